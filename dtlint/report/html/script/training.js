// What a training loop keeps beside its model: the scaler's scale, memory; and what the trace did not see.

function scaler() {
  const scaler = DATA.scaler;
  if (!scaler) return null;
  const parts = [],
    width = 1080,
    height = 200,
    left = 64,
    bottom = 28;
  if (scaler.changes.length) {
    const logs = scaler.changes.map(([, scale]) => Math.log2(scale)),
      low = Math.floor(Math.min(...logs)) - 1,
      high = Math.ceil(Math.max(...logs)) + 1;
    const x = (update) => left + (update / Math.max(scaler.updates, 1)) * (width - left - 12),
      y = (log) => 8 + ((high - log) / (high - low)) * (height - bottom - 8);
    const path =
      scaler.changes
        .map(([update, scale], index) => `${index ? `H${x(update)}V` : `M${x(update)} `}${y(Math.log2(scale))}`)
        .join("") + `H${x(scaler.updates)}`;
    const each = Math.max(1, Math.ceil((high - low) / 6)),
      every = round(scaler.updates / 12);
    const levels = [],
      marks = [];
    for (let log = low; log <= high; log += each)
      levels.push(
        s("line", { class: "grid", x1: left, x2: width - 12, y1: y(log), y2: y(log) }),
        s("text", { x: left - 10, y: y(log) + 4, "text-anchor": "end" }, power(log)),
      );
    for (let update = 0; update < scaler.updates; update += every)
      marks.push(
        s(
          "text",
          { x: x(update), y: height - 8, "text-anchor": "middle" },
          update === 0 ? "step 1" : number(update + 1),
        ),
      );
    parts.push(
      s(
        "svg",
        {
          class: "plot",
          viewBox: `0 0 ${width} ${height}`,
          role: "img",
          "aria-label": `The scale went from ${short(scaler.changes[0][1])} to ${short(scaler.scale ?? scaler.changes[scaler.changes.length - 1][1])}; ${plural(scaler.skipped, "step")} skipped. The table has each change.`,
        },
        levels,
        s("path", { class: "trace", d: path }),
        scaler.skips.map((step) =>
          s("line", {
            class: "skipped",
            x1: x(step + 0.5),
            x2: x(step + 0.5),
            y1: height - bottom - 10,
            y2: height - bottom,
          }),
        ),
        marks,
      ),
    );
    const rows = table(
      "Each change of the scale.",
      [
        { title: "Step", num: true, value: (row) => row[0], show: (row) => number(row[0] + 1) },
        { title: "Scale", num: true, value: (row) => row[1], show: (row) => number(row[1]) },
        { title: "", fixed: true, value: (row) => row[2], show: (row) => row[2] },
      ],
      scaler.changes.map(([update, scale], index, all) => [
        update,
        scale,
        !index
          ? "after the first step"
          : scale < all[index - 1][1]
            ? "lower: the step was skipped"
            : "higher: no overflow for a while",
      ]),
      [0, false],
    );
    parts.push(h("details", {}, h("summary", {}, "The scale as a table"), rows.element));
  }
  return section(
    "scaler",
    "GradScaler",
    null,
    `${plural(scaler.skipped, "step")} of ${number(scaler.updates)} skipped${scaler.scale === null ? "" : `; the scale ended at ${number(scaler.scale)}, and was never below ${number(scaler.lowest)}`}. Red ticks are skipped steps.`,
    parts,
  );
}
function memory() {
  if (!DATA.memory.length) return null;
  const kinds = new Map();
  for (const [what, dtype, size] of DATA.memory) kinds.set(what, [...(kinds.get(what) || []), [dtype, size]]);
  const most = Math.max(...[...kinds.values()].map((held) => held.reduce((sum, [, size]) => sum + size, 0)));
  const bars = [...kinds.entries()].map(([what, held]) => {
    const total = held.reduce((sum, [, size]) => sum + size, 0);
    let from = 0;
    return [
      h("div", {}, what),
      s(
        "svg",
        { viewBox: "0 0 1000 18", preserveAspectRatio: "none", "aria-hidden": "true" },
        held.map(([dtype, size]) => {
          const rect = s("rect", { class: `fill ${family(dtype)}`, x: from, width: (size / most) * 1000, height: 18 });
          from += (size / most) * 1000;
          return rect;
        }),
      ),
      h("div", { class: "num" }, bytes(total)),
    ];
  });
  const rows = table(
    "Bytes in the step that held most.",
    [
      { title: "What", value: (row) => row[0] },
      { title: "dtype", value: (row) => row[1], show: (row) => dtypeMark(row[1]) },
      { title: "Size", num: true, value: (row) => row[2], show: (row) => bytes(row[2]) },
    ],
    DATA.memory,
    [2, true],
  );
  return section(
    "memory",
    "Memory by dtype",
    null,
    "What a training step keeps, where it held most.",
    h("div", { class: "bars" }, bars),
    rows.element,
  );
}
function unseen() {
  if (!DATA.unseen.length) return null;
  return section(
    "unseen",
    "Not seen",
    DATA.unseen.length,
    "Parts of the program that this trace does not show.",
    table(
      "What was passed over, how often, and where it was met first.",
      [
        { title: "What", value: (row) => row[0] },
        { title: "Times", num: true, value: (row) => row[1], show: (row) => number(row[1]) },
        { title: "First", value: (row) => row[2], show: (row) => h("code", {}, row[2]) },
      ],
      DATA.unseen,
      [1, true],
    ).element,
  );
}
