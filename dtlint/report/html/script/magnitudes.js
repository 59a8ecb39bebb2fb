// Magnitudes against the ranges of dtypes: how values are spread, and the largest of each operator.

const SPAN = [-36, 24],
  STRIP = 170,
  TICKS = [-30, -20, -10, 0, 10, 20];
const at = (exponent, width) =>
  ((Math.max(SPAN[0], Math.min(SPAN[1], exponent)) - SPAN[0]) / (SPAN[1] - SPAN[0])) * width;
const edges = (width, height) =>
  DATA.ranges
    .filter((one) => one.name === "float16")
    .flatMap((one) => [one.smallest, one.normal, one.top])
    .map((exponent) =>
      s("line", { class: "limit", x1: at(exponent, width), x2: at(exponent, width), y1: 0, y2: height }),
    );
function strip(row) {
  const exponent = Math.log2(row.reach);
  return s(
    "svg",
    {
      class: `strip ${family(row.to)}`,
      viewBox: `0 0 ${STRIP} 18`,
      width: STRIP,
      height: 18,
      role: "img",
      "aria-label": `2 to the ${exponent.toFixed(1)}`,
    },
    s("line", { class: "base", x1: 0, x2: STRIP, y1: 9, y2: 9 }),
    edges(STRIP, 18),
    s("circle", { class: "fill", cx: Math.max(5, Math.min(STRIP - 5, at(exponent, STRIP))), cy: 9, r: 5 }),
  );
}
// Bars of a histogram over exponents. Counts lie between 2^(first - 1) and the powers that follow.
function bars(width, height, parts) {
  const most = Math.max(...sums(parts).values()),
    drawn = [],
    below = new Map();
  for (const [name, first, counts] of parts)
    counts.forEach((count, index) => {
      const exponent = Math.max(SPAN[0] + 1, Math.min(SPAN[1], first + index)),
        tall = (count / most) * height,
        from = below.get(exponent) || 0;
      if (!count) return;
      below.set(exponent, from + tall);
      drawn.push(
        s("rect", {
          class: `fill ${family(name)}`,
          x: at(exponent - 1, width),
          width: Math.max(width / (SPAN[1] - SPAN[0]) - 0.6, 0.6),
          y: height - from - tall,
          height: tall,
        }),
      );
    });
  return drawn;
}
function sums(parts) {
  const found = new Map();
  for (const [, first, counts] of parts)
    counts.forEach((count, index) => {
      const exponent = Math.max(SPAN[0] + 1, Math.min(SPAN[1], first + index));
      found.set(exponent, (found.get(exponent) || 0) + count);
    });
  return found;
}
function together(what) {
  const found = new Map();
  for (const [kind, , dtype, , first, counts] of DATA.histograms) {
    if (kind !== what) continue;
    const sum = found.get(dtype) || found.set(dtype, new Map()).get(dtype);
    counts.forEach((count, index) => sum.set(first + index, (sum.get(first + index) || 0) + count));
  }
  return [...found.entries()].map(([dtype, sum]) => {
    const low = Math.min(...sum.keys()),
      high = Math.max(...sum.keys());
    return [dtype, low, Array.from({ length: high - low + 1 }, (_, index) => sum.get(low + index) || 0)];
  });
}
function ranges() {
  const width = 720,
    from = 96,
    room = width - from - 12,
    rows = DATA.ranges,
    kinds = ["activations", "gradients", "weights"]
      .map((what) => [what, together(what)])
      .filter(([, parts]) => parts.some(([, , counts]) => counts.length));
  const x = (exponent) => from + at(exponent, room),
    tall = 48,
    top = rows.length * 24 + 6,
    bottom = top + kinds.length * (tall + 10);
  return s(
    "svg",
    {
      class: "plot ranges",
      viewBox: `0 0 ${width} ${bottom + 26}`,
      role: "img",
      "aria-label": `${rows.map((one) => `${one.name} reaches ${short(one.max)}, its smallest number is 2 to the ${one.smallest}`).join("; ")}. ${kinds.length ? "Below them, how values are spread over the powers of 2; the table has the shares by module." : ""}`,
    },
    rows.map((one, index) => [
      s("text", { x: 0, y: index * 24 + 16 }, one.name),
      s("rect", {
        class: "band sub",
        x: x(one.smallest),
        width: Math.max(0, x(one.normal) - x(one.smallest)),
        y: index * 24 + 4,
        height: 16,
        rx: 2,
      }),
      s("rect", {
        class: "band",
        x: x(one.normal),
        width: x(one.top) - x(one.normal),
        y: index * 24 + 4,
        height: 16,
        rx: 2,
      }),
      s(
        "text",
        one.top > SPAN[1]
          ? { x: width - 18, y: index * 24 + 16, "text-anchor": "end" }
          : { x: x(one.top) + 6, y: index * 24 + 16 },
        one.top > SPAN[1] ? `up to ${power(128)}` : short(one.max),
      ),
    ]),
    kinds.map(([what, parts], index) => {
      const y = top + index * (tall + 10);
      return [
        s("text", { x: 0, y: y + tall - 2 }, what),
        s("g", { transform: `translate(${from} ${y})` }, edges(room, tall), bars(room, tall, parts)),
        s("line", { class: "edge", x1: from, x2: from + room, y1: y + tall, y2: y + tall }),
      ];
    }),
    TICKS.map((exponent) => [
      s("line", { class: "grid", x1: x(exponent), x2: x(exponent), y1: bottom, y2: bottom + 6 }),
      s("text", { x: x(exponent), y: bottom + 20, "text-anchor": "middle" }, power(exponent)),
    ]),
  );
}
function histograms() {
  if (!DATA.histograms.length) return null;
  const rows = DATA.histograms.map(([what, module, dtype, zeros, first, counts]) => ({
    what,
    module,
    dtype,
    zeros,
    first,
    counts,
    all: counts.reduce((sum, count) => sum + count, 0),
  }));
  // A value of at most half the smallest number of a dtype is rounded to 0.
  const lost = (name) => ({
    title: `0 in ${name.replace("float8_", "")}`,
    num: true,
    value: (row) => row.share[name],
    show: (row) =>
      row.share[name] > 0.01 ? h("span", { class: "over" }, percent(row.share[name])) : percent(row.share[name]),
    text: () => "",
  });
  for (const row of rows) {
    row.share = {};
    for (const range of DATA.ranges)
      row.share[range.name] = row.all
        ? row.counts.slice(0, Math.max(0, range.smallest - row.first)).reduce((sum, count) => sum + count, 0) / row.all
        : 0;
  }
  const found = table(
    "Some values of each tensor, in sampled steps: how they are spread, and the share of those other than 0 that a dtype rounds to 0. Dotted lines are float16's smallest number, its smallest normal one, and its limit.",
    [
      { title: "Module", value: (row) => named(row.module), show: (row) => h("code", {}, named(row.module)) },
      { title: "What", value: (row) => row.what },
      { title: "dtype", value: (row) => row.dtype, show: (row) => dtypeMark(row.dtype) },
      {
        title: `${power(SPAN[0])} to ${power(SPAN[1])}`,
        fixed: true,
        value: (row) => row.first,
        text: () => "",
        show: (row) =>
          s(
            "svg",
            {
              class: "strip",
              viewBox: `0 0 ${STRIP} 26`,
              width: STRIP,
              height: 26,
              role: "img",
              "aria-label": row.all
                ? `from 2 to the ${row.first - 1} to 2 to the ${row.first + row.counts.length - 1}`
                : "all 0",
            },
            edges(STRIP, 26),
            row.all ? bars(STRIP, 25, [[row.dtype, row.first, row.counts]]) : null,
            s("line", { class: "base", x1: 0, x2: STRIP, y1: 25.5, y2: 25.5 }),
          ),
      },
      lost("float16"),
      lost("float8_e5m2"),
      lost("float8_e4m3"),
      {
        title: "Are 0",
        num: true,
        value: (row) => row.zeros / (row.all + row.zeros),
        show: (row) => percent(row.zeros / (row.all + row.zeros)),
        text: () => "",
      },
    ],
    rows,
    [4, true],
  );
  const kinds = [...new Set(rows.map((row) => row.what))];
  return [
    h("h3", { class: "sub" }, "How values are spread"),
    h(
      "div",
      { class: "controls" },
      search("Module", found.filter),
      kinds.length > 1 &&
        choice("Show", [["", "All"], ...kinds.map((one) => [one, one])], "", (value) =>
          found.only((row) => !value || row.what === value),
        ),
      found.tally,
    ),
    found.element,
  ];
}

function magnitudes() {
  if (!DATA.lines.length) return null;
  const fits = (name) => {
    const range = DATA.ranges.find((one) => one.name === name);
    return {
      title: name.replace("float8_", ""),
      num: true,
      value: (row) => row.reach / range.max,
      show: (row) =>
        row.reach > range.max
          ? h("span", { class: "over" }, "overflows")
          : h("span", { class: "fits" }, row.reach > range.max / 1000 ? percent(row.reach / range.max) : "fits"),
    };
  };
  const rows = table(
    "The largest finite magnitude of each operator's results over the run, and the share of each dtype's limit that it takes.",
    [
      operator,
      { title: "dtype", value: (row) => row.to, show: (row) => dtypeMark(row.to) },
      { title: "Largest", num: true, value: (row) => row.reach, show: (row) => short(row.reach) },
      {
        title: `${power(SPAN[0])} to ${power(SPAN[1])}`,
        fixed: true,
        value: (row) => row.reach,
        text: () => "",
        show: strip,
      },
      fits("float16"),
      fits("float8_e5m2"),
      fits("float8_e4m3"),
      {
        title: "Not finite",
        num: true,
        value: (row) => row.bad,
        show: (row) => (row.bad ? h("span", { class: "over" }, number(row.bad)) : "0"),
      },
    ],
    DATA.lines,
    [2, true],
    (row) => (row.frame.length ? () => frame(row.frame) : null),
  );
  const dtypes = [...new Set(DATA.lines.map((row) => row.to))].sort();
  return section(
    "magnitudes",
    "Magnitudes",
    DATA.lines.length,
    "Dark bars are the normal numbers of a dtype, light ones its subnormal numbers, which lose precision. Gradients are as the optimizer got them, without the GradScaler's scale.",
    ranges(),
    histograms(),
    h("h3", { class: "sub" }, "Largest values"),
    h(
      "div",
      { class: "controls" },
      search("Operator, file or module", rows.filter),
      dtypes.length > 1 &&
        choice("dtype", [["", "All"], ...dtypes.map((one) => [one, one])], "", (value) =>
          rows.only((row) => !value || row.to === value),
        ),
      rows.tally,
    ),
    rows.element,
    leftOut(DATA.left_out[0]),
  );
}
