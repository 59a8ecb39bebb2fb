"use strict";
// Building the page: elements, numbers and names. What comes from the data goes in as text, never as markup.

const DATA = JSON.parse(document.getElementById("data").textContent);
const SVG = "http://www.w3.org/2000/svg";
const FAMILIES = ["float64", "float32", "bfloat16", "float16", "float8", "other"];
const SECTIONS = [];

function fill(element, properties, children) {
  for (const [key, value] of Object.entries(properties || {})) {
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (value !== null && value !== undefined && value !== false)
      element.setAttribute(key, value === true ? "" : value);
  }
  for (const child of children.flat(Infinity))
    if (child !== null && child !== undefined && child !== false) element.append(child);
  return element;
}
const h = (tag, properties, ...children) => fill(document.createElement(tag), properties, children);
const s = (tag, properties, ...children) => fill(document.createElementNS(SVG, tag), properties, children);

const number = (value) => value.toLocaleString("en-US");
const plural = (count, noun) => `${number(count)} ${noun}${count === 1 ? "" : "s"}`;

function power(exponent) {
  const digits = "\u2070\u00b9\u00b2\u00b3\u2074\u2075\u2076\u2077\u2078\u2079";
  return `2${String(exponent).replace(/[-\d]/g, (sign) => (sign === "-" ? "\u207b" : digits[sign]))}`;
}

function percent(share) {
  if (share === 0) return "0%";
  if (share < 0.001) return "<0.1%";
  return `${(100 * share).toFixed(share < 0.1 ? 1 : 0)}%`;
}

function bytes(count) {
  for (const [size, unit] of [
    [1e9, "GB"],
    [1e6, "MB"],
    [1e3, "kB"],
  ])
    if (count >= size) return `${(count / size).toPrecision(3)} ${unit}`;
  return `${count} B`;
}

function short(value) {
  const size = Math.abs(value);
  if (size >= 1e6 || (size > 0 && size < 1e-3)) return value.toExponential(2);
  if (Number.isInteger(value) || size >= 1e4) return number(Math.round(value));
  return String(+value.toPrecision(4));
}

// Text with code between backquotes.
const rich = (text) => text.split("`").map((part, index) => (index % 2 ? h("code", {}, part) : part));

function family(dtype) {
  if (dtype.startsWith("float8")) return "float8";
  return FAMILIES.includes(dtype) ? dtype : "other";
}

const dtypeMark = (dtype) => h("span", { class: `dtype ${family(dtype)}` }, h("span", { class: "swatch" }), dtype);
const named = (module) => module || "(outside modules)";
const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

// Lines of source: pieces with what each is marked as, and labels below them.
function frame(rows) {
  if (!rows.length) return null;
  return h(
    "pre",
    { tabindex: 0, role: "group", "aria-label": "Source" },
    rows.map(([line, pieces, labels]) => [
      h(
        "span",
        { class: "row" },
        h("span", { class: "no", "aria-hidden": "true" }, String(line)),
        pieces.map(([text, kind]) => (kind ? h("mark", { class: kind === "note" ? "note" : null }, text) : text)),
        "\n",
      ),
      labels.map(([indent, text]) =>
        h(
          "span",
          { class: "row" },
          h("span", { class: "no" }),
          h("span", { class: "label" }, `${" ".repeat(indent)}\u2514 ${text}`),
          "\n",
        ),
      ),
    ]),
  );
}

// A part of the page that the navigation leads to.
function section(id, title, count, lead, ...children) {
  SECTIONS.push([id, title, count]);
  return h(
    "section",
    { id, "aria-labelledby": `${id}-h` },
    h("h2", { id: `${id}-h` }, title),
    lead && h("p", { class: "lead" }, lead),
    children,
  );
}
