// Findings with their lines of source; of a check by file, and counted by rule.

function advice(finding) {
  const rows = [];
  if (finding.help) rows.push(h("dt", {}, "What to do"), h("dd", {}, rich(finding.help)));
  if (finding.fix)
    rows.push(
      h("dt", {}, "Fix"),
      h("dd", {}, rich(finding.fix), finding.trust && h("span", { class: "hint" }, ` (${finding.trust})`)),
    );
  for (const [place, message] of finding.notes)
    rows.push(h("dt", {}, "Also"), h("dd", {}, h("code", {}, place), ` `, rich(message)));
  return rows.length ? h("dl", { class: "advice" }, rows) : null;
}
function card(finding, index) {
  const rule = DATA.rules[finding.code];
  return h(
    "article",
    { class: `finding ${finding.severity}`, id: `f${index}` },
    h(
      "div",
      { class: "meta" },
      h("span", { class: `badge ${finding.severity}` }, finding.severity),
      h("span", {}, `${finding.code} ${finding.name}`),
      h("code", {}, finding.place),
    ),
    h("h3", {}, rich(finding.message)),
    frame(finding.frame),
    advice(finding),
    rule &&
      h(
        "details",
        {},
        h("summary", {}, `About ${finding.code}`),
        ["summary", "what", "why"].map((part) => rule[part] && h("p", {}, rich(rule[part]))),
      ),
  );
}
function findings() {
  const all = DATA.findings.map((finding, index) => ({
    finding,
    index,
    $: [finding.severity, finding.code, finding.name, finding.place, finding.message].join(" ").toLowerCase(),
  }));
  const list = h("div"),
    tally = h("span", { class: "tally", role: "status" }),
    files = DATA.kind === "check";
  let shown = FIRST,
    words = [],
    severity = "all",
    rule = "";
  function draw() {
    const found = all.filter(
      (one) =>
        matches(one.$, words) &&
        (severity === "all" || one.finding.severity === severity) &&
        (!rule || one.finding.code === rule),
    );
    const cards = [];
    let file = null;
    for (const { finding, index } of found.slice(0, shown)) {
      if (files && finding.path !== file) {
        file = finding.path;
        cards.push(
          h(
            "h3",
            { class: "file" },
            h("code", {}, file),
            h("span", { class: "tally" }, plural(found.filter((one) => one.finding.path === file).length, "finding")),
          ),
        );
      }
      cards.push(card(finding, index));
    }
    if (found.length > shown)
      cards.push(
        h(
          "p",
          { class: "more" },
          h(
            "button",
            {
              type: "button",
              onclick: () => {
                shown = Infinity;
                draw();
              },
            },
            `Show all ${number(found.length)}`,
          ),
        ),
      );
    list.replaceChildren(...cards);
    tally.textContent =
      found.length === all.length
        ? plural(all.length, "finding")
        : `${number(found.length)} of ${plural(all.length, "finding")}`;
  }
  draw();
  findings.showAll = () => {
    shown = Infinity;
    words = [];
    severity = "all";
    rule = "";
    draw();
  };
  const severities = ["error", "warning", "info"].filter((one) => all.some(({ finding }) => finding.severity === one));
  const codes = [...new Map(all.map(({ finding }) => [finding.code, finding.name])).entries()].sort();
  const controls = h(
    "div",
    { class: "controls" },
    search("Find in findings", (given) => {
      words = given;
      shown = FIRST;
      draw();
    }),
    severities.length > 1 &&
      choice("Severity", [["all", "All"], ...severities.map((one) => [one, one])], "all", (value) => {
        severity = value;
        draw();
      }),
    codes.length > 1 && [
      h("label", { for: "rule" }, "Rule"),
      h(
        "select",
        {
          id: "rule",
          onchange: (event) => {
            rule = event.target.value;
            draw();
          },
        },
        h("option", { value: "" }, "All rules"),
        codes.map(([code, name]) => h("option", { value: code }, `${code} ${name}`)),
      ),
    ],
    tally,
  );
  return section("findings", "Findings", all.length, null, all.length > 1 ? controls : null, list);
}

function byRule() {
  const counts = new Map();
  for (const finding of DATA.findings) {
    const row = counts.get(finding.code) || {
      code: finding.code,
      name: finding.name,
      severity: finding.severity,
      count: 0,
      files: new Set(),
    };
    row.count += 1;
    row.files.add(finding.path);
    counts.set(finding.code, row);
  }
  if (counts.size < 2) return null;
  return section(
    "rules",
    "Rules",
    counts.size,
    null,
    table(
      "How often each rule found something.",
      [
        {
          title: "Rule",
          value: (row) => row.code,
          text: (row) => `${row.code} ${row.name}`,
          show: (row) => `${row.code} ${row.name}`,
        },
        {
          title: "Worst",
          value: (row) => row.severity,
          show: (row) => h("span", { class: `badge ${row.severity}` }, row.severity),
        },
        { title: "Findings", num: true, value: (row) => row.count, show: (row) => number(row.count) },
        { title: "Files", num: true, value: (row) => row.files.size, show: (row) => number(row.files.size) },
        {
          title: "What it finds",
          fixed: true,
          value: (row) => (DATA.rules[row.code] || {}).summary || "",
          show: (row) => rich((DATA.rules[row.code] || {}).summary || ""),
        },
      ],
      [...counts.values()],
      [2, true],
    ).element,
  );
}
