// Modules over the steps: the map, the births, and the totals of each module.

function modules() {
  const series = DATA.series;
  if (!series) return null;
  const rows = rowsOf(series);
  const map = new Heat(rows, series.starts);
  const born = rows.some((row) => row.births.length);
  const totals = table(
    "Over the whole run. The magnitude is a power of 2 that no finite value reached.",
    TOTALS,
    rows.map(total),
    born ? [6, true] : [0, false],
  );
  modules.ready = () => map.pick();
  const phases = [0, 1].filter((phase) => rows.some((row) => row.backward === phase));
  const controls = h(
    "div",
    { class: "controls" },
    choice("Show", METRICS, map.metric, (metric) => map.show(metric)),
    phases.length > 1 &&
      choice(
        "Phase",
        [
          [0, "Forward"],
          [1, "Backward"],
        ],
        map.backward,
        (backward) => {
          map.backward = backward;
          map.pick();
        },
      ),
    search("Module", (words) => {
      map.find(words);
      totals.filter(words);
    }),
    map.tally,
  );
  return section(
    "modules",
    "Modules over the steps",
    new Set(rows.map((row) => row.module)).size,
    "Which dtypes each module's operators gave, step by step, and how large their values were.",
    controls,
    map.legend,
    map.axis,
    map.element,
    map.readout,
    events(),
    h("h3", { class: "sub" }, "Totals"),
    totals.element,
  );
}

// The rows of the record, each with the events that were born in it.
function rowsOf(series) {
  const rows = series.rows.map(([module, backward, dtypes, runs], index) => ({
    module,
    backward,
    dtypes,
    runs,
    index,
    $: named(module).toLowerCase(),
    births: [],
  }));
  const at = new Map(rows.map((row) => [`${row.backward} ${row.module}`, row]));
  for (const event of DATA.events) {
    const row = at.get(`${event.phase === "backward" ? 1 : 0} ${event.module}`);
    if (row && !event.expected) row.births.push(event);
  }
  return rows;
}

function total(row) {
  const calls = {};
  let [top, lost, bad] = [NOTHING, -1, 0];
  for (const run of row.runs) {
    row.dtypes.forEach((dtype, index) => {
      calls[dtype] = (calls[dtype] || 0) + run[COLUMNS] * (run[CALLS + index] || 0);
    });
    top = Math.max(top, run[EXPONENT]);
    lost = Math.max(lost, run[LOST]);
    bad += run[COLUMNS] * run[NONFINITE];
  }
  const first = Math.min(...row.births.map((event) => event.step));
  return {
    module: row.module,
    phase: row.backward ? "backward" : "forward",
    index: row.index,
    calls,
    top,
    lost,
    bad,
    first,
  };
}

const TOTALS = [
  {
    title: "Module",
    value: (row) => row.index,
    text: (row) => named(row.module),
    show: (row) => h("code", {}, named(row.module)),
  },
  { title: "Phase", value: (row) => row.phase },
  {
    title: "Results by dtype",
    value: (row) => Object.keys(row.calls).join(),
    show: (row) =>
      Object.entries(row.calls)
        .sort((a, b) => b[1] - a[1])
        .map(([dtype, count]) => h("div", {}, dtypeMark(dtype), ` ${number(count)}`)),
  },
  {
    title: "Magnitude below",
    num: true,
    value: (row) => row.top,
    show: (row) => (row.top === NOTHING ? "" : power(row.top)),
  },
  {
    title: "Lost to 0, at most",
    num: true,
    value: (row) => row.lost,
    show: (row) => (row.lost < 0 ? "" : percent(row.lost / 1000)),
  },
  {
    title: "Not finite",
    num: true,
    value: (row) => row.bad,
    show: (row) => (row.bad ? h("span", { class: "over" }, number(row.bad)) : "0"),
  },
  {
    title: "First birth",
    num: true,
    value: (row) => -row.first,
    show: (row) => (row.first < Infinity ? `step ${number(row.first + 1)}` : ""),
  },
];

function events() {
  if (!DATA.events.length) return null;
  const rows = table(
    "Where values that are not finite were born, and what became of them.",
    [
      {
        title: "What",
        value: (row) => row.what,
        show: (row) => [rich(row.what), h("div", { class: "where" }, row.place)],
      },
      { title: "Kind", value: (row) => row.kind },
      {
        title: "Step",
        num: true,
        value: (row) => row.step,
        show: (row) => [
          DATA.steps ? number(row.step + 1) : "",
          row.rank !== null && h("div", { class: "where" }, `rank ${row.rank}`),
        ],
      },
      { title: "dtype", value: (row) => row.dtype, show: (row) => dtypeMark(row.dtype) },
      { title: "Operands", value: (row) => row.inputs },
      { title: "Times", num: true, value: (row) => row.times, show: (row) => number(row.times) },
      { title: "What became of it", value: (row) => row.fate },
    ],
    DATA.events,
    [2, false],
    (row) => (row.frame.length ? () => frame(row.frame) : null),
  );
  return [h("h3", { class: "sub" }, "Births"), rows.element];
}
