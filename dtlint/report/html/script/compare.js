// Two runs beside the source: where they differ by more than rounding, what each module adds, and what has no counterpart.

function relative(value) {
  if (value === null) return "one is not finite";
  if (value === 0) return "0";
  return value < 0.995 ? `${+(100 * value).toPrecision(2)}%` : `${number(Math.round(100 * value))}%`;
}

// Without the blanks that all lines begin with: there is less room in two columns.
function dedented(rows) {
  const texts = rows.map(([, pieces]) => pieces.map(([text]) => text).join("")).filter((text) => text.trim());
  const blanks = Math.min(...texts.map((text) => text.length - text.trimStart().length));
  return rows.map(([line, pieces, labels]) => {
    let left = blanks;
    const kept = pieces.map(([text, kind]) => {
      const cut = Math.min(left, text.length);
      left -= cut;
      return [text.slice(cut), kind];
    });
    return [line, kept, labels];
  });
}

// The lines of both records; once, where they are the same.
function pair([first, second]) {
  if (!first.length && !second.length) return null;
  const [one, other] = DATA.names;
  const side = (name, rows) =>
    rows.length > 0 && h("figure", {}, h("figcaption", {}, name), frame(dedented(rows)));
  return h(
    "div",
    { class: "pair" },
    first.length ? [side(one, first), side(other, second)] : side(`${one} and ${other}`, second),
  );
}

const onRanks = (ranks) =>
  ranks.length ? `on rank${ranks.length === 1 ? "" : "s"} ${ranks.join(", ")} alone` : null;

// What stands first: the first operator that differs by more than rounding explains, or that none does.
function verdict() {
  const [first] = DATA.beyond;
  if (!first) {
    const most = Math.max(...DATA.explained.map((row) => row[4]), 0);
    return h(
      "div",
      { class: "start ok" },
      h("p", { class: "eyebrow" }, "Nothing is beyond rounding"),
      h(
        "h2",
        {},
        DATA.compared
          ? `Rounding explains each of ${plural(DATA.compared, "result")}, of which the farthest apart differ by ${relative(most)}`
          : "No result of one run has a counterpart in the other",
      ),
    );
  }
  return h(
    "div",
    { class: "start" },
    h("p", { class: "eyebrow" }, "Where it is more than rounding first"),
    h("h2", {}, rich(first.message)),
    pair(first.frames),
    h(
      "dl",
      { class: "why" },
      h("dt", {}, "Where"),
      h("dd", {}, h("a", { href: "#f0" }, first.place)),
      numbers(first),
    ),
  );
}

function numbers(finding) {
  const rows = [];
  if (finding.cause) rows.push(h("dt", {}, "Cause"), h("dd", {}, rich(finding.cause)));
  rows.push(
    h("dt", {}, "Difference"),
    h(
      "dd",
      {},
      `${relative(finding.difference)}; rounding explains ${relative(finding.explained)}, and its operands differ by ${relative(finding.incoming)}`,
    ),
  );
  return rows;
}

function beyond() {
  if (!DATA.beyond.length) return null;
  const all = DATA.beyond.map((finding, index) => ({
    finding,
    index,
    $: [finding.place, finding.message, finding.cause, finding.phase, ...finding.dtypes].join(" ").toLowerCase(),
  }));
  const list = h("div"),
    tally = h("span", { class: "tally", role: "status" });
  let shown = FIRST,
    words = [];
  function draw() {
    const found = all.filter((one) => matches(one.$, words));
    list.replaceChildren(...found.slice(0, shown).map(apart));
    if (found.length > shown)
      list.append(
        h("p", { class: "more" }, h("button", { type: "button", onclick: showAll }, `Show all ${number(found.length)}`)),
      );
    tally.textContent =
      found.length === all.length
        ? plural(all.length, "line")
        : `${number(found.length)} of ${plural(all.length, "line")}`;
  }
  function showAll() {
    shown = Infinity;
    draw();
  }
  beyond.showAll = () => {
    words = [];
    showAll();
  };
  draw();
  const controls = h(
    "div",
    { class: "controls" },
    search("Find in these", (given) => {
      words = given;
      draw();
    }),
    tally,
  );
  return section(
    "beyond",
    "Beyond rounding",
    all.length,
    "Each line of source whose results differ by more than rounding explains, in the order in which they ran. An operator is judged by what its operands differ by, so that a mistake is told where it begins.",
    all.length > 1 ? controls : null,
    list,
    leftOut(DATA.left_out[0]),
  );
}

function apart({ finding, index }) {
  return h(
    "article",
    { class: "finding error", id: `f${index}` },
    h(
      "div",
      { class: "meta" },
      h("code", {}, finding.place),
      h("span", {}, `step ${number(finding.step + 1)}`),
      finding.phase === "backward" && h("span", {}, "backward"),
      finding.times > 1 && h("span", {}, `${number(finding.times)} times`),
      onRanks(finding.ranks) && h("span", {}, onRanks(finding.ranks)),
      [...new Set(finding.dtypes)].map(dtypeMark),
    ),
    h("h3", {}, rich(finding.message)),
    pair(finding.frames),
    h("dl", { class: "advice" }, numbers(finding)),
  );
}

function added() {
  const rows = DATA.modules.filter((row) => row.added > 0);
  if (!rows.length) return null;
  const shown = table(
    "By the root of the sum of squares of what its own operators add in the forward to the differences of their operands.",
    [
      {
        title: "Module",
        value: (row) => row.module,
        text: (row) => named(row.module),
        show: (row) => h("code", {}, named(row.module)),
      },
      { title: "Adds", num: true, value: (row) => row.added, show: (row) => relative(row.added) },
      {
        title: "Most of it",
        value: (row) => row.place,
        text: (row) => `${row.text} ${row.op} ${row.place}`,
        show: (row) => [h("code", {}, row.text || row.op), h("div", { class: "where" }, `${row.op}, ${row.place}`)],
      },
    ],
    rows,
    [1, true],
    (row) => (row.frame.length ? () => frame(row.frame) : null),
  );
  return section(
    "modules",
    "What modules add",
    rows.length,
    "Where the difference of the results comes from, rounding included.",
    h("div", { class: "controls" }, search("Module, operator or file", shown.filter), shown.tally),
    shown.element,
  );
}

function sites() {
  if (!DATA.sites.length) return null;
  const share = (row) => (row.difference === null ? Infinity : row.difference / row.explained);
  const rows = table(
    "Each operator and line that was compared: the result that is farthest beyond what rounding explains, or nearest to it.",
    [
      operator,
      {
        title: "dtypes",
        value: (row) => row.dtypes.join(" "),
        show: (row) => [...new Set(row.dtypes)].map((one) => h("div", {}, dtypeMark(one))),
      },
      { title: "Results", num: true, value: (row) => row.results, show: (row) => number(row.results) },
      {
        title: "Difference",
        num: true,
        value: (row) => row.difference ?? Infinity,
        show: (row) => (row.beyond ? h("span", { class: "over" }, relative(row.difference)) : relative(row.difference)),
      },
      { title: "Explained", num: true, value: (row) => row.explained, show: (row) => relative(row.explained) },
      {
        title: "Of operands",
        num: true,
        value: (row) => row.incoming ?? Infinity,
        show: (row) => relative(row.incoming),
      },
      {
        title: "Share of explained",
        num: true,
        value: share,
        show: (row) => (row.difference === null ? "" : relative(share(row))),
      },
      {
        title: "Beyond",
        num: true,
        value: (row) => row.beyond,
        show: (row) => (row.beyond ? h("span", { class: "over" }, number(row.beyond)) : "0"),
      },
    ],
    DATA.sites,
    [6, true],
    (row) => (row.frames[1].length ? () => pair(row.frames) : null),
  );
  const over = DATA.sites.filter((row) => row.beyond).length;
  return section(
    "sites",
    "Operators and lines",
    DATA.sites.length,
    "Differences are relative, in norms. Open a row to see its lines of source in both records.",
    h(
      "div",
      { class: "controls" },
      search("Operator, file, module or dtype", rows.filter),
      over > 0 &&
        over < DATA.sites.length &&
        choice(
          "Show",
          [
            ["", "All"],
            ["b", `Beyond rounding (${number(over)})`],
          ],
          "",
          (value) => rows.only((row) => !value || row.beyond > 0),
        ),
      rows.tally,
    ),
    rows.element,
    leftOut(DATA.left_out[1]),
  );
}

function losses() {
  if (!DATA.losses.length) return null;
  const apart = ([, one, other]) =>
    one === null || other === null
      ? Infinity
      : Math.abs(one - other) / (Math.max(Math.abs(one), Math.abs(other)) || 1);
  const told = (value) => (value === null ? "not finite" : String(+value.toPrecision(6)));
  return section(
    "losses",
    "Losses",
    DATA.losses.length,
    "The numbers from which a backward began.",
    table(
      "Without the GradScaler's scale, where there is one.",
      [
        { title: "Step", num: true, value: (row) => row[0], show: (row) => number(row[0] + 1) },
        { title: DATA.names[0], num: true, value: (row) => row[1], show: (row) => told(row[1]) },
        { title: DATA.names[1], num: true, value: (row) => row[2], show: (row) => told(row[2]) },
        {
          title: "Apart",
          num: true,
          value: apart,
          show: (row) => (apart(row) === Infinity ? "" : relative(apart(row))),
        },
      ],
      DATA.losses,
      [0, false],
    ).element,
  );
}

function explained() {
  if (!DATA.explained.length) return null;
  return section(
    "explained",
    "Explained by rounding",
    DATA.explained.length,
    "Results whose differences are no larger than rounding explains, by the dtypes that they have in both runs.",
    table(
      "The difference in the middle, and the largest.",
      [
        { title: DATA.names[0], value: (row) => row[0], show: (row) => dtypeMark(row[0]) },
        { title: DATA.names[1], value: (row) => row[1], show: (row) => dtypeMark(row[1]) },
        { title: "Results", num: true, value: (row) => row[2], show: (row) => number(row[2]) },
        { title: "In the middle", num: true, value: (row) => row[3], show: (row) => relative(row[3]) },
        { title: "Largest", num: true, value: (row) => row[4], show: (row) => relative(row[4]) },
      ],
      DATA.explained,
      [2, true],
    ).element,
  );
}

function alone() {
  if (!DATA.alone.length && !DATA.not_judged) return null;
  const rows =
    DATA.alone.length > 0 &&
    table(
      "Lines of source with a result that only one run has.",
      [
        {
          title: "Operator",
          value: (row) => row.op,
          text: (row) => `${row.op} ${row.text} ${row.place} ${row.module}`,
          show: (row) => [
            h("code", {}, row.text || row.op),
            h("div", { class: "where" }, `${row.op}, ${row.place}${row.module ? ` in ${row.module}` : ""}`),
          ],
        },
        { title: "Only in", value: (row) => row.name },
      ],
      DATA.alone,
      [1, false],
      (row) => (row.frame.length ? () => frame(row.frame) : null),
    );
  return section(
    "alone",
    "Not compared",
    DATA.alone.length,
    DATA.not_judged
      ? `${plural(DATA.not_judged, "result")} of values that an index picked, which was computed, ${DATA.not_judged === 1 ? "is" : "are"} not judged.`
      : null,
    rows && rows.element,
    leftOut(DATA.left_out[2]),
  );
}
