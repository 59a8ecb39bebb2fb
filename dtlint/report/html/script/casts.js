// Casts and promotions, by line of source.

function inModules(row) {
  const names = row.modules.filter(Boolean);
  return names.length
    ? ` in ${names.slice(0, 1).join(", ")}${row.modules.length + row.more > 1 ? ` (+${row.modules.length + row.more - 1})` : ""}`
    : "";
}
const operator = {
  title: "Operator",
  value: (row) => row.op,
  text: (row) => `${row.op} ${row.text} ${row.place} ${row.modules.join(" ")} ${row.phase}`,
  show: (row) => [
    h("code", {}, row.text || row.op),
    h(
      "div",
      { class: "where" },
      `${row.op}${row.phase === "backward" ? ", backward" : ""}, ${row.place}${inModules(row)}`,
    ),
  ],
};

const leftOut = (count) =>
  count ? h("p", { class: "tally" }, `${plural(count, "row")} with smaller numbers left out.`) : null;

function casts() {
  if (!DATA.casts.length) return null;
  const rows = table(
    "Each line of source that changed a dtype. A promotion is a result wider than one of its operands.",
    [
      operator,
      {
        title: "What",
        value: (row) => row.kind,
        show: (row) => [row.kind, row.by && h("div", { class: "where" }, "by ", rich(row.by))],
        text: (row) => `${row.kind} ${row.by}`,
      },
      {
        title: "From",
        value: (row) => row.from,
        show: (row) => row.from.split(" and ").map((one) => h("div", {}, dtypeMark(one))),
      },
      { title: "To", value: (row) => row.to, show: (row) => row.to && dtypeMark(row.to) },
      { title: "Calls", num: true, value: (row) => row.calls, show: (row) => number(row.calls) },
      { title: "Moved", num: true, value: (row) => row.bytes, show: (row) => (row.bytes ? bytes(row.bytes) : "") },
      {
        title: "Lost to 0",
        num: true,
        value: (row) => row.lost,
        show: (row) =>
          row.lost === null
            ? ""
            : row.lost > 0.01
              ? h("span", { class: "over" }, percent(row.lost))
              : percent(row.lost),
      },
      { title: "Undone", num: true, value: (row) => row.undone, show: (row) => (row.undone ? number(row.undone) : "") },
    ],
    DATA.casts,
    [4, true],
    (row) => (row.frame.length ? () => frame(row.frame) : null),
  );
  const promotions = DATA.casts.filter((row) => !row.kind.startsWith("cast")).length;
  return section(
    "casts",
    "Casts and promotions",
    DATA.casts.length,
    null,
    h(
      "div",
      { class: "controls" },
      search("Operator, file, module or dtype", rows.filter),
      promotions > 0 &&
        promotions < DATA.casts.length &&
        choice(
          "Show",
          [
            ["", "All"],
            ["p", `Promotions (${number(promotions)})`],
            ["c", `Casts (${number(DATA.casts.length - promotions)})`],
          ],
          "",
          (value) => rows.only((row) => !value || (value === "c") === row.kind.startsWith("cast")),
        ),
      rows.tally,
    ),
    rows.element,
    leftOut(DATA.left_out[1]),
  );
}
