// The page, made of its sections.

const main = document.getElementById("main");
document.getElementById("head").append(
  h("p", { class: "brand" }, `dtlint ${DATA.kind}`),
  h("h1", {}, DATA.title),
  h(
    "dl",
    { class: "facts" },
    DATA.facts.map(([name, value]) =>
      h("div", {}, h("dt", {}, name), h("dd", {}, typeof value === "number" ? number(value) : value)),
    ),
  ),
);
const parts =
  DATA.kind === "check"
    ? [
        DATA.findings.length
          ? null
          : h(
              "div",
              { class: "start ok" },
              h("p", { class: "eyebrow" }, "All checks passed"),
              h("h2", {}, "Nothing was found"),
            ),
        byRule(),
        DATA.findings.length ? findings() : null,
      ]
    : DATA.kind === "compare"
      ? [verdict(), beyond(), added(), sites(), losses(), explained(), alone()]
      : [
          start(),
          answers(),
          modules(),
          magnitudes(),
          casts(),
          scaler(),
          memory(),
          DATA.findings.length ? findings() : null,
          unseen(),
        ];
main.append(...parts.filter(Boolean));
document.getElementById("nav").append(
  h(
    "ul",
    {},
    SECTIONS.map(([id, title, count]) =>
      h("li", {}, h("a", { href: `#${id}` }, title, count !== null && h("span", { class: "count" }, number(count)))),
    ),
  ),
);
if (SECTIONS.length < 2) document.getElementById("nav").hidden = true;
if (modules.ready) modules.ready();
function follow() {
  const id = location.hash.slice(1);
  const list = DATA.kind === "compare" ? beyond : findings;
  if (/^f\d+$/.test(id) && !document.getElementById(id) && list.showAll) list.showAll();
  const target = id && document.getElementById(id);
  if (target) target.scrollIntoView();
}
window.addEventListener("hashchange", follow);
if (location.hash) follow();
window.addEventListener("beforeprint", () =>
  document.querySelectorAll("details").forEach((one) => {
    one.open = true;
  }),
);
