// What stands first: where it went wrong, why, what to change; and the answers of the terminal's screen.

const WENT_BAD = ["DT914", "DT901", "DT902", "DT903", "DT904", "DT909"];
function start() {
  const grave = DATA.findings.findIndex((finding) => finding.severity === "error" && WENT_BAD.includes(finding.code));
  const index = grave >= 0 ? grave : DATA.findings.findIndex((finding) => finding.severity !== "info");
  if (index < 0) {
    const [tone, what, sentence] = DATA.verdict;
    return h("div", { class: `start ${tone}` }, h("p", { class: "eyebrow" }, what), h("h2", {}, rich(sentence)));
  }
  const finding = DATA.findings[index],
    tone = grave >= 0 ? "" : " warning";
  return h(
    "div",
    { class: `start${tone}${finding.severity === "warning" ? " warning" : ""}` },
    h(
      "p",
      { class: "eyebrow" },
      finding.code === "DT914" ? "Where it stopped" : grave >= 0 ? "Where it went wrong first" : "Worth a look first",
    ),
    h("h2", {}, rich(finding.message)),
    frame(finding.frame),
    h(
      "dl",
      { class: "why" },
      h("dt", {}, "Where"),
      h("dd", {}, h("code", {}, finding.place)),
      before(finding),
      finding.help && [h("dt", {}, "What to change"), h("dd", {}, rich(finding.help))],
      h("dt", {}, "Rule"),
      h("dd", {}, h("a", { href: `#f${index}` }, `${finding.code} ${finding.name}`)),
    ),
  );
}
// How large the module's values were in the columns before the birth: did they grow, or did it come at once?
function before(finding) {
  const event = DATA.events.find((one) => !one.expected && one.place === `${finding.path}:${finding.line}`),
    series = DATA.series;
  const row =
    event &&
    series &&
    series.rows.find(
      ([module, backward]) => module === event.module && backward === (event.phase === "backward" ? 1 : 0),
    );
  if (!row) return null;
  const tops = row[3]
    .flatMap((run) => Array(run[0]).fill(run[1]))
    .filter((top, at) => top !== NOTHING && series.starts[at + 1] <= event.step)
    .slice(-6);
  if (!tops.length) return null;
  return [
    h("dt", {}, "Before that"),
    h("dd", {}, h("code", {}, named(event.module)), ` stayed below ${tops.map(power).join(", ")}`),
  ];
}
function answers() {
  const items = DATA.answers.map((answer) => {
    const [title, ...rest] = answer.title.endsWith(":") ? [answer.title.slice(0, -1)] : answer.title.split(/: (.*)/s);
    const below = [];
    for (const detail of answer.details) {
      if (detail.length < 3 && below.length)
        below[below.length - 1].append(
          h(
            "div",
            { class: "plain" },
            detail[1] === "more" ? h("a", { href: "#findings" }, detail[0]) : rich(detail[0]),
          ),
        );
      else if (detail.length > 2)
        below.push(
          h(
            "li",
            {},
            detail[2] === null
              ? h("code", {}, `${detail[0]} ${detail[1]}`)
              : h("a", { href: `#f${detail[2]}` }, `${detail[0]} ${detail[1]}`),
          ),
        );
    }
    const loose = answer.details.every((detail) => detail.length < 3);
    return h(
      "li",
      {},
      h("span", {
        class: `tone ${answer.tone}`,
        role: "img",
        "aria-label": answer.tone === "plain" ? "fact" : answer.tone,
      }),
      h(
        "div",
        {},
        h("span", { class: "said" }, title),
        rest[0] && h("span", { class: "value" }, `: ${rest[0]}`),
        answer.details.length > 0 &&
          h("ul", {}, loose ? answer.details.map((detail) => h("li", { class: "plain" }, rich(detail[0]))) : below),
      ),
    );
  });
  return items.length ? section("answers", "Answers", null, null, h("ol", { class: "answers" }, items)) : null;
}
