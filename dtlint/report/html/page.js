"use strict";
const DATA = JSON.parse(document.getElementById("data").textContent);
const FIRST = 15, NOTHING = -2000, ROW = 18, HEAD = 40;
const SVG = "http://www.w3.org/2000/svg";

// -- building the page: text goes in as text, never as markup

function fill(element, properties, children) {
  for (const [key, value] of Object.entries(properties || {})) {
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (value !== null && value !== undefined && value !== false) element.setAttribute(key, value === true ? "" : value);
  }
  for (const child of children.flat(Infinity)) if (child !== null && child !== undefined && child !== false) element.append(child);
  return element;
}
const h = (tag, properties, ...children) => fill(document.createElement(tag), properties, children);
const s = (tag, properties, ...children) => fill(document.createElementNS(SVG, tag), properties, children);
const number = (value) => value.toLocaleString("en-US");
const plural = (count, noun) => `${number(count)} ${noun}${count === 1 ? "" : "s"}`;
const power = (exponent) => `2${String(exponent).replace(/[-\d]/g, (digit) => digit === "-" ? "\u207b" : "\u2070\u00b9\u00b2\u00b3\u2074\u2075\u2076\u2077\u2078\u2079"[digit])}`;
const rich = (text) => text.split("`").map((part, index) => index % 2 ? h("code", {}, part) : part);
const percent = (share) => share === 0 ? "0%" : share > 0 && share < 0.001 ? "<0.1%" : `${(100 * share).toFixed(share < 0.1 ? 1 : 0)}%`;
const bytes = (n) => n >= 1e9 ? `${(n / 1e9).toPrecision(3)} GB` : n >= 1e6 ? `${(n / 1e6).toPrecision(3)} MB` : n >= 1e3 ? `${(n / 1e3).toPrecision(3)} kB` : `${n} B`;
const short = (value) => value === 0 ? "0" : Number.isInteger(value) && Math.abs(value) < 1e6 ? number(value) : Math.abs(value) >= 1e4 && Math.abs(value) < 1e6 ? number(Math.round(value)) : Math.abs(value) >= 1e6 || Math.abs(value) < 1e-3 ? value.toExponential(2) : String(+value.toPrecision(4));
const family = (dtype) => dtype.startsWith("float8") ? "float8" : ["float16", "bfloat16", "float32", "float64"].includes(dtype) ? dtype : "other";
const FAMILIES = ["float64", "float32", "bfloat16", "float16", "float8", "other"];
const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
const named = (module) => module || "(outside modules)";
const dtypeMark = (dtype) => h("span", {class: `dtype ${family(dtype)}`}, h("span", {class: "swatch"}), dtype);

function frame(rows) {
  if (!rows.length) return null;
  return h("pre", {tabindex: 0, role: "group", "aria-label": "Source"}, rows.map(([line, pieces, labels]) => [
    h("span", {class: "row"}, h("span", {class: "no", "aria-hidden": "true"}, String(line)),
      pieces.map(([text, kind]) => kind ? h("mark", {class: kind === "note" ? "note" : null}, text) : text), "\n"),
    labels.map(([indent, text]) => h("span", {class: "row"}, h("span", {class: "no"}), h("span", {class: "label"}, `${" ".repeat(indent)}\u2514 ${text}`), "\n")),
  ]));
}

function search(label, onchange) {
  const input = h("input", {type: "search", id: `q${search.count = (search.count || 0) + 1}`, placeholder: "Filter", autocomplete: "off", spellcheck: "false"});
  input.addEventListener("input", () => onchange(input.value.trim().toLowerCase().split(/\s+/).filter(Boolean)));
  return [h("label", {for: input.id}, label), input];
}
const matches = (text, words) => words.every((word) => text.includes(word));

function choice(label, options, chosen, onchange) {
  const buttons = options.map(([value, text]) => h("button", {type: "button", "aria-pressed": String(value === chosen), onclick: () => {
    buttons.forEach((button, index) => button.setAttribute("aria-pressed", String(options[index][0] === value)));
    onchange(value);
  }}, text));
  return h("fieldset", {}, h("legend", {}, label), h("span", {class: "choice"}, buttons));
}

// A table that sorts by its headings and shows the first rows until more are asked for.
function table(caption, columns, rows, sorted, detail) {
  let shown = FIRST, words = [], keep = () => true, [by, down] = sorted;
  const body = h("tbody"), foot = h("div", {class: "more"}), tally = h("span", {class: "tally", role: "status"});
  for (const row of rows) row.$ = columns.map((column) => String(column.text ? column.text(row) : column.value(row) ?? "")).join(" ").toLowerCase();
  const heads = columns.map((column, index) => {
    const th = h("th", {scope: "col", class: column.num ? "num" : null}, column.fixed ? column.title : h("button", {type: "button", onclick: () => {
      down = by === index ? !down : Boolean(column.num);
      by = index;
      draw();
    }}, column.title));
    return th;
  });
  function draw() {
    heads.forEach((th, index) => index === by ? th.setAttribute("aria-sort", down ? "descending" : "ascending") : th.removeAttribute("aria-sort"));
    const value = columns[by].value, found = rows.filter((row) => matches(row.$, words) && keep(row));
    found.sort((a, b) => { const x = value(a) ?? -Infinity, y = value(b) ?? -Infinity; return (x < y ? -1 : x > y ? 1 : 0) * (down ? -1 : 1); });
    body.replaceChildren(...found.slice(0, shown).map(line));
    foot.replaceChildren(...(found.length > shown ? [h("button", {type: "button", onclick: () => { shown = Infinity; draw(); }}, `Show all ${number(found.length)}`)] : []));
    foot.hidden = found.length <= shown;
    tally.textContent = found.length === rows.length ? plural(rows.length, "row") : `${number(found.length)} of ${plural(rows.length, "row")}`;
  }
  function line(row) {
    const more = detail && detail(row);
    let opened = null;
    const tr = h("tr", {}, columns.map((column, index) => {
      let content = column.show ? column.show(row) : column.value(row) ?? "";
      if (index === 0 && more) {
        content = h("button", {type: "button", class: "opener", "aria-expanded": "false", onclick: (event) => {
          const button = event.currentTarget, open = button.getAttribute("aria-expanded") === "false";
          button.setAttribute("aria-expanded", String(open));
          if (open) tr.after(opened = h("tr", {class: "detail"}, h("td", {colspan: columns.length}, more())));
          else opened.remove();
        }}, h("span", {}, content));
      }
      return h(index === 0 ? "th" : "td", {class: column.num ? "num" : null, scope: index === 0 ? "row" : null}, content);
    }));
    return tr;
  }
  draw();
  return {
    tally,
    filter: (given) => { words = given; shown = FIRST; draw(); },
    only: (test) => { keep = test; shown = FIRST; draw(); },
    element: h("div", {class: "scroll"}, h("table", {}, h("caption", {}, caption), h("thead", {}, h("tr", {}, heads)), body), foot),
  };
}

const SECTIONS = [];
function section(id, title, count, lead, ...children) {
  SECTIONS.push([id, title, count]);
  return h("section", {id, "aria-labelledby": `${id}-h`}, h("h2", {id: `${id}-h`}, title), lead && h("p", {class: "lead"}, lead), children);
}

// -- findings

function advice(finding) {
  const rows = [];
  if (finding.help) rows.push(h("dt", {}, "What to do"), h("dd", {}, rich(finding.help)));
  if (finding.fix) rows.push(h("dt", {}, "Fix"), h("dd", {}, rich(finding.fix), finding.trust && h("span", {class: "hint"}, ` (${finding.trust})`)));
  for (const [place, message] of finding.notes) rows.push(h("dt", {}, "Also"), h("dd", {}, h("code", {}, place), ` `, rich(message)));
  return rows.length ? h("dl", {class: "advice"}, rows) : null;
}
function card(finding, index) {
  const rule = DATA.rules[finding.code];
  return h("article", {class: `finding ${finding.severity}`, id: `f${index}`},
    h("div", {class: "meta"}, h("span", {class: `badge ${finding.severity}`}, finding.severity), h("span", {}, `${finding.code} ${finding.name}`), h("code", {}, finding.place)),
    h("h3", {}, rich(finding.message)), frame(finding.frame), advice(finding),
    rule && h("details", {}, h("summary", {}, `About ${finding.code}`), ["summary", "what", "why"].map((part) => rule[part] && h("p", {}, rich(rule[part])))));
}
function findings() {
  const all = DATA.findings.map((finding, index) => ({finding, index, $: [finding.severity, finding.code, finding.name, finding.place, finding.message].join(" ").toLowerCase()}));
  const list = h("div"), tally = h("span", {class: "tally", role: "status"}), files = DATA.kind === "check";
  let shown = FIRST, words = [], severity = "all", rule = "";
  function draw() {
    const found = all.filter((one) => matches(one.$, words) && (severity === "all" || one.finding.severity === severity) && (!rule || one.finding.code === rule));
    const cards = [];
    let file = null;
    for (const {finding, index} of found.slice(0, shown)) {
      if (files && finding.path !== file) {
        file = finding.path;
        cards.push(h("h3", {class: "file"}, h("code", {}, file), h("span", {class: "tally"}, plural(found.filter((one) => one.finding.path === file).length, "finding"))));
      }
      cards.push(card(finding, index));
    }
    if (found.length > shown) cards.push(h("p", {class: "more"}, h("button", {type: "button", onclick: () => { shown = Infinity; draw(); }}, `Show all ${number(found.length)}`)));
    list.replaceChildren(...cards);
    tally.textContent = found.length === all.length ? plural(all.length, "finding") : `${number(found.length)} of ${plural(all.length, "finding")}`;
  }
  draw();
  findings.showAll = () => { shown = Infinity; words = []; severity = "all"; rule = ""; draw(); };
  const severities = ["error", "warning", "info"].filter((one) => all.some(({finding}) => finding.severity === one));
  const codes = [...new Map(all.map(({finding}) => [finding.code, finding.name])).entries()].sort();
  const controls = h("div", {class: "controls"},
    search("Find in findings", (given) => { words = given; shown = FIRST; draw(); }),
    severities.length > 1 && choice("Severity", [["all", "All"], ...severities.map((one) => [one, one])], "all", (value) => { severity = value; draw(); }),
    codes.length > 1 && [h("label", {for: "rule"}, "Rule"), h("select", {id: "rule", onchange: (event) => { rule = event.target.value; draw(); }}, h("option", {value: ""}, "All rules"), codes.map(([code, name]) => h("option", {value: code}, `${code} ${name}`)))],
    tally);
  return section("findings", "Findings", all.length, null, all.length > 1 ? controls : null, list);
}

// -- the first answer: where it went wrong, why, what to change

const WENT_BAD = ["DT914", "DT901", "DT902", "DT903", "DT904", "DT909"];
function start() {
  const grave = DATA.findings.findIndex((finding) => finding.severity === "error" && WENT_BAD.includes(finding.code));
  const index = grave >= 0 ? grave : DATA.findings.findIndex((finding) => finding.severity !== "info");
  if (index < 0) {
    const [tone, what, sentence] = DATA.verdict;
    return h("div", {class: `start ${tone}`}, h("p", {class: "eyebrow"}, what), h("h2", {}, rich(sentence)));
  }
  const finding = DATA.findings[index], tone = grave >= 0 ? "" : " warning";
  return h("div", {class: `start${tone}${finding.severity === "warning" ? " warning" : ""}`},
    h("p", {class: "eyebrow"}, finding.code === "DT914" ? "Where it stopped" : grave >= 0 ? "Where it went wrong first" : "Worth a look first"),
    h("h2", {}, rich(finding.message)), frame(finding.frame),
    h("dl", {class: "why"}, h("dt", {}, "Where"), h("dd", {}, h("code", {}, finding.place)),
      finding.help && [h("dt", {}, "What to change"), h("dd", {}, rich(finding.help))],
      h("dt", {}, "Rule"), h("dd", {}, h("a", {href: `#f${index}`}, `${finding.code} ${finding.name}`))));
}
function answers() {
  const items = DATA.answers.map((answer) => {
    const [title, ...rest] = answer.title.endsWith(":") ? [answer.title.slice(0, -1)] : answer.title.split(/: (.*)/s);
    const below = [];
    for (const detail of answer.details) {
      if (detail.length < 3 && below.length) below[below.length - 1].append(h("div", {class: "plain"}, detail[1] === "more" ? h("a", {href: "#findings"}, detail[0]) : rich(detail[0])));
      else if (detail.length > 2) below.push(h("li", {}, detail[2] === null ? h("code", {}, `${detail[0]} ${detail[1]}`) : h("a", {href: `#f${detail[2]}`}, `${detail[0]} ${detail[1]}`)));
    }
    const loose = answer.details.every((detail) => detail.length < 3);
    return h("li", {}, h("span", {class: `tone ${answer.tone}`, role: "img", "aria-label": answer.tone === "plain" ? "fact" : answer.tone}),
      h("div", {}, h("span", {class: "said"}, title), rest[0] && h("span", {class: "value"}, `: ${rest[0]}`),
        answer.details.length > 0 && h("ul", {}, loose ? answer.details.map((detail) => h("li", {class: "plain"}, rich(detail[0]))) : below)));
  });
  return items.length ? section("answers", "Answers", null, null, h("ol", {class: "answers"}, items)) : null;
}

// -- modules over the steps

const METRICS = [["dtypes", "dtypes"], ["magnitude", "Largest magnitude"], ["lost", "Lost to 0"], ["nonfinite", "Not finite"]];
const LOW = -24, TOP = 16;
function mix(from, to, share) {
  const parse = (hex) => [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
  const a = parse(from), b = parse(to);
  return `rgb(${a.map((value, index) => Math.round(value + (b[index] - value) * share)).join()})`;
}
function shade(share) { return mix(colour("cold"), colour("hot"), Math.max(0, Math.min(1, share))); }

function modules() {
  const series = DATA.series;
  if (!series) return null;
  const columns = series.starts.length;
  const rows = series.rows.map(([module, backward, dtypes, runs], index) => ({module, backward, dtypes, runs, index, $: named(module).toLowerCase(), births: []}));
  const place = new Map(rows.map((row) => [`${row.backward} ${row.module}`, row]));
  const column = (step) => { let low = 0, high = columns - 1; while (low < high) { const middle = (low + high + 1) >> 1; if (series.starts[middle] <= step) low = middle; else high = middle - 1; } return low; };
  for (const event of DATA.events) {
    const row = !event.expected && place.get(`${event.phase === "backward" ? 1 : 0} ${event.module}`);
    if (row) row.births.push([column(event.step), event]);
  }
  const state = {metric: rows.some((row) => row.births.length) ? "magnitude" : "dtypes", backward: 0, words: [], row: 0, column: 0};
  const has = [0, 1].map((phase) => rows.some((row) => row.backward === phase));
  if (!has[0]) state.backward = 1;
  let shown = [];
  const canvas = h("canvas"), axis = h("canvas", {class: "axis", "aria-hidden": "true"}), space = h("div", {}, canvas);
  const heat = h("div", {class: "heat", tabindex: 0, role: "application", "aria-label": "Modules by step. Arrow keys move from cell to cell; the text below says what is there. The table below has the same numbers.", "aria-describedby": "readout"}, space);
  const legend = h("div", {class: "legend"}), readout = h("output", {class: "readout", id: "readout"}), tally = h("span", {class: "tally", role: "status"});
  const cell = (row, at) => { for (const run of row.runs) { if (at < run[0]) return run; at -= run[0]; } return null; };
  const steps = (at) => { const first = series.starts[at] + 1, next = at + 1 < columns ? series.starts[at + 1] : Math.max(DATA.steps, first); return DATA.steps === 0 ? "the whole run" : next > first ? `steps ${number(first)} to ${number(next)}` : `step ${number(first)}`; };
  let left = 0, plot = 0, ratio = 1, pending = false;

  function paint() {
    pending = false;
    const top = heat.scrollTop, height = heat.clientHeight, first = Math.floor(top / ROW), context = canvas.getContext("2d");
    ratio = window.devicePixelRatio || 1;
    canvas.width = heat.clientWidth * ratio; canvas.height = height * ratio;
    canvas.style.width = `${heat.clientWidth}px`; canvas.style.height = `${height}px`;
    context.scale(ratio, ratio);
    context.font = `12px ${getComputedStyle(heat).getPropertyValue("font-family")}`;
    context.textBaseline = "middle";
    const palette = Object.fromEntries(FAMILIES.map((name) => [name, colour(name)]));
    const paints = {fg: colour("fg"), muted: colour("muted"), bg: colour("bg"), error: colour("error"), bad: colour("bad"), grid: colour("grid"), loss: colour("loss"), accent: colour("accent"), cold: colour("cold")};
    const ramp = Array.from({length: 41}, (_, index) => shade(index / 40));
    for (let index = first; index < Math.min(shown.length, first + Math.ceil(height / ROW) + 1); index++) {
      const row = shown[index], y = index * ROW - top;
      context.fillStyle = index === state.row && document.activeElement === heat ? paints.accent : row.births.length ? paints.error : paints.fg;
      label(context, named(row.module), y + ROW / 2);
      context.fillStyle = paints.grid;
      context.fillRect(left, y + 1, plot, ROW - 2);
      let at = 0;
      for (const run of row.runs) {
        const x = Math.round(left + at * plot / columns);
        at += run[0];
        const width = Math.max(Math.round(left + at * plot / columns) - x, 1);
        draw(context, row, run, x, y + 1, width, ROW - 2, palette, paints, ramp);
      }
      for (const [where] of row.births) birth(context, left + (where + 0.5) * plot / columns, y + ROW / 2, paints);
    }
    if (document.activeElement === heat && shown.length) {
      context.strokeStyle = paints.accent; context.lineWidth = 2;
      context.strokeRect(left + state.column * plot / columns - 1, state.row * ROW - top, Math.max(plot / columns, 4) + 2, ROW);
    }
  }
  function label(context, text, y) {
    const room = left - 20;
    let cut = text;
    while (context.measureText(cut).width > room && cut.length > 4) cut = `\u2026${cut.slice(2)}`;
    context.fillText(cut, 12, y);
  }
  function draw(context, row, run, x, y, width, height, palette, paints, ramp) {
    if (state.metric === "dtypes") {
      const counts = {};
      row.dtypes.forEach((dtype, index) => { const name = family(dtype); counts[name] = (counts[name] || 0) + (run[4 + index] || 0); });
      const floats = FAMILIES.filter((name) => name !== "other" && counts[name]), kinds = floats.length ? floats : counts.other ? ["other"] : [];
      const total = kinds.reduce((sum, name) => sum + counts[name], 0);
      let from = y;
      for (const name of kinds) { const part = height * counts[name] / total; context.fillStyle = palette[name]; context.fillRect(x, from, width, part); from += part; }
    } else if (state.metric === "magnitude") {
      if (run[1] !== NOTHING) {
        context.fillStyle = run[1] > TOP ? palette.float64 : ramp[Math.max(0, Math.min(40, run[1] - LOW))];
        context.fillRect(x, y, width, height);
      }
      if (run[3]) {
        const part = run[1] === NOTHING ? height : 5;
        context.fillStyle = paints.bad;
        context.fillRect(x, y + height - part, width, part);
      }
    } else if (state.metric === "lost") {
      if (run[2] < 0) return;
      context.fillStyle = run[2] ? mix(paints.cold, paints.loss, Math.min(1, 0.15 + run[2] / 500)) : paints.cold;
      context.fillRect(x, y, width, height);
    } else if (run.slice(4).some(Boolean)) {
      context.fillStyle = run[3] ? paints.bad : paints.cold;
      context.fillRect(x, y, width, height);
    }
  }
  function birth(context, x, y, paints) {
    for (const [style, width] of [[paints.bg, 5], [paints.fg, 2]]) {
      context.strokeStyle = style; context.lineWidth = width; context.beginPath();
      context.moveTo(x - 4, y - 4); context.lineTo(x + 4, y + 4); context.moveTo(x + 4, y - 4); context.lineTo(x - 4, y + 4); context.stroke();
    }
  }
  function ticks() {
    const context = axis.getContext("2d"), width = heat.clientWidth;
    axis.width = width * ratio; axis.height = 18 * ratio; axis.style.width = `${width}px`; axis.style.height = "18px";
    context.scale(ratio, ratio);
    context.font = `12px ${getComputedStyle(heat).getPropertyValue("font-family")}`;
    context.fillStyle = colour("muted"); context.textBaseline = "middle";
    context.fillText("Module", 12, 9);
    if (!DATA.steps) return;
    const each = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 1e5, 1e6].find((size) => DATA.steps / size <= Math.max(2, plot / 70)) || 1e7;
    let free = -1;
    for (let step = 1; step <= DATA.steps; step = step === 1 && each > 1 ? each : step + each) {
      const x = left + column(step - 1) * plot / columns, text = step === 1 ? "step 1" : number(step);
      if (x > free && x + 30 < width) { context.fillText(text, x, 9); free = x + context.measureText(text).width + 12; }
    }
  }
  function layout() {
    const context = canvas.getContext("2d");
    context.font = `12px ${getComputedStyle(heat).getPropertyValue("font-family")}`;
    const widest = Math.max(60, ...shown.slice(0, 400).map((row) => context.measureText(named(row.module)).width));
    left = Math.min(widest + 28, Math.max(120, heat.clientWidth * 0.32));
    plot = heat.clientWidth - left - 12;
    heat.style.height = `${Math.max(Math.min(shown.length * ROW, 26 * ROW), ROW) + 2}px`;
    space.style.height = `${shown.length * ROW}px`;
    paint(); ticks();
  }
  function pick() {
    shown = rows.filter((row) => row.backward === state.backward && matches(row.$, state.words));
    state.row = Math.min(state.row, Math.max(shown.length - 1, 0));
    const all = rows.filter((row) => row.backward === state.backward).length;
    tally.textContent = shown.length === all ? plural(all, "module") : `${number(shown.length)} of ${plural(all, "module")}`;
    layout(); explain(); key();
  }
  function soon() { if (!pending) { pending = true; requestAnimationFrame(paint); } }
  function explain(quiet) {
    const row = shown[state.row];
    if (!row || quiet) { readout.replaceChildren(h("span", {class: "hint"}, row ? "Point at a cell, or move with the arrow keys." : "No module has that in its name.")); return; }
    const run = cell(row, state.column), said = [];
    if (run) {
      const calls = row.dtypes.map((dtype, index) => [dtype, run[4 + index] || 0]).filter(([, count]) => count);
      said.push(calls.length ? calls.map(([dtype, count]) => `${plural(count, "result")} in ${dtype}`).join(", ") : "nothing ran");
      if (run[1] !== NOTHING) said.push(`magnitudes below ${power(run[1])} (${short(2 ** run[1])})`);
      if (run[2] >= 0) said.push(`${percent(run[2] / 1000)} of values lost to 0 in casts`);
      if (run[3]) said.push(`${plural(run[3], "result")} not finite`);
    } else said.push("nothing ran");
    const born = row.births.filter(([where]) => where === state.column).map(([, event]) => h("div", {class: "over"}, `Born here: ${event.kind}, ${event.what} at ${event.place}`));
    readout.replaceChildren(h("b", {}, named(row.module)), ` ${row.backward ? "backward, " : ""}${steps(state.column)}: ${said.join("; ")}`, ...born);
  }
  function key() {
    const marks = [], cross = h("span", {}, "\u2715 a non-finite value is born");
    if (state.metric === "dtypes") {
      const used = new Set(rows.flatMap((row) => row.dtypes.map(family)));
      for (const name of FAMILIES) if (used.has(name)) marks.push(h("span", {class: `dtype ${name}`}, h("span", {class: "swatch"}), name === "other" ? "no float" : name));
    } else if (state.metric === "magnitude") {
      const bar = s("svg", {class: "ramp", width: 160, height: 12, "aria-hidden": "true"}, Array.from({length: 41}, (_, index) => s("rect", {x: index * 160 / 41, width: 160 / 41 + 0.5, height: 12, fill: shade(index / 40)})));
      const patch = (name) => s("svg", {width: 10, height: 10, "aria-hidden": "true"}, s("rect", {width: 10, height: 10, rx: 2, fill: colour(name)}));
      marks.push(h("span", {}, `${power(-24)} `, bar, " 65504"), h("span", {}, patch("float64"), " beyond float16"), h("span", {}, patch("bad"), " inf or NaN"));
    } else if (state.metric === "lost") marks.push(h("span", {}, "Share of values that a cast to a narrower dtype turned into 0; darker is more"));
    else marks.push(h("span", {}, "Red: a result held inf or NaN in that step"));
    if (rows.some((row) => row.births.length)) marks.push(cross);
    legend.replaceChildren(...marks);
  }
  function move(event) {
    const moves = {ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1], PageUp: [-20, 0], PageDown: [20, 0], Home: [0, -columns], End: [0, columns]};
    const by = moves[event.key];
    if (!by || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    state.row = Math.max(0, Math.min(shown.length - 1, state.row + by[0]));
    state.column = Math.max(0, Math.min(columns - 1, state.column + by[1]));
    const y = state.row * ROW;
    if (y < heat.scrollTop) heat.scrollTop = y;
    if (y + ROW > heat.scrollTop + heat.clientHeight) heat.scrollTop = y + ROW - heat.clientHeight;
    explain(); soon();
  }
  function point(event) {
    const box = heat.getBoundingClientRect(), x = event.clientX - box.left - left, y = event.clientY - box.top + heat.scrollTop;
    if (x < 0 || x >= plot) return;
    state.row = Math.max(0, Math.min(shown.length - 1, Math.floor(y / ROW)));
    state.column = Math.max(0, Math.min(columns - 1, Math.floor(x * columns / plot)));
    explain(); soon();
  }
  heat.addEventListener("scroll", soon); heat.addEventListener("keydown", move); heat.addEventListener("mousemove", point);
  heat.addEventListener("focus", () => { explain(); soon(); }); heat.addEventListener("blur", soon);
  new ResizeObserver(layout).observe(heat);
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { layout(); key(); });

  const sums = rows.map((row) => {
    const calls = {}; let top = NOTHING, lost = -1, bad = 0;
    for (const run of row.runs) {
      row.dtypes.forEach((dtype, index) => { calls[dtype] = (calls[dtype] || 0) + run[0] * (run[4 + index] || 0); });
      top = Math.max(top, run[1]); lost = Math.max(lost, run[2]); bad += run[0] * run[3];
    }
    const first = row.births.map(([, event]) => event).sort((a, b) => a.step - b.step)[0];
    return {module: row.module, phase: row.backward ? "backward" : "forward", index: row.index, calls, top, lost, bad, first};
  });
  const totals = table("Over the whole run. The magnitude is a power of 2 that no finite value reached.", [
    {title: "Module", value: (row) => row.index, text: (row) => named(row.module), show: (row) => h("code", {}, named(row.module))},
    {title: "Phase", value: (row) => row.phase},
    {title: "Results by dtype", value: (row) => Object.keys(row.calls).join(), show: (row) => Object.entries(row.calls).sort((a, b) => b[1] - a[1]).map(([dtype, count]) => h("div", {}, dtypeMark(dtype), ` ${number(count)}`))},
    {title: "Magnitude below", num: true, value: (row) => row.top, show: (row) => row.top === NOTHING ? "" : power(row.top)},
    {title: "Lost to 0, at most", num: true, value: (row) => row.lost, show: (row) => row.lost < 0 ? "" : percent(row.lost / 1000)},
    {title: "Not finite", num: true, value: (row) => row.bad, show: (row) => row.bad ? h("span", {class: "over"}, number(row.bad)) : "0"},
    {title: "First birth", num: true, value: (row) => row.first ? -row.first.step : null, show: (row) => row.first ? `step ${number(row.first.step + 1)}` : ""},
  ], sums, rows.some((row) => row.births.length) ? [6, true] : [0, false]);
  modules.ready = pick;
  const controls = h("div", {class: "controls"},
    choice("Show", METRICS, state.metric, (value) => { state.metric = value; key(); paint(); }),
    has[0] && has[1] && choice("Phase", [[0, "Forward"], [1, "Backward"]], state.backward, (value) => { state.backward = value; pick(); }),
    search("Module", (words) => { state.words = words; heat.scrollTop = 0; state.row = 0; pick(); totals.filter(words); }), tally);
  return section("modules", "Modules over the steps", new Set(rows.map((row) => row.module)).size,
    "Which dtypes each module's operators gave, step by step, and how large their values were.", controls, legend, axis, heat, readout, events(), h("h3", {class: "sub"}, "Totals"), totals.element);
}
function events() {
  if (!DATA.events.length) return null;
  const rows = table("Where values that are not finite were born, and what became of them.", [
    {title: "What", value: (row) => row.what, show: (row) => [rich(row.what), h("div", {class: "where"}, row.place)]},
    {title: "Kind", value: (row) => row.kind},
    {title: "Step", num: true, value: (row) => row.step, show: (row) => DATA.steps ? number(row.step + 1) : ""},
    {title: "dtype", value: (row) => row.dtype, show: (row) => dtypeMark(row.dtype)},
    {title: "Operands", value: (row) => row.inputs},
    {title: "Times", num: true, value: (row) => row.times, show: (row) => number(row.times)},
    {title: "What became of it", value: (row) => row.fate},
  ], DATA.events, [2, false], (row) => row.frame.length ? () => frame(row.frame) : null);
  return [h("h3", {class: "sub"}, "Births"), rows.element];
}

// -- magnitudes against the ranges of dtypes

const SPAN = [-30, 30], STRIP = 170;
const at = (exponent, width) => (Math.max(SPAN[0], Math.min(SPAN[1], exponent)) - SPAN[0]) / (SPAN[1] - SPAN[0]) * width;
function strip(row) {
  const exponent = Math.log2(row.reach);
  return s("svg", {class: `strip ${family(row.to)}`, viewBox: `0 0 ${STRIP} 18`, width: STRIP, height: 18, role: "img", "aria-label": `2 to the ${exponent.toFixed(1)}`},
    s("line", {class: "base", x1: 0, x2: STRIP, y1: 9, y2: 9}),
    DATA.ranges.filter((one) => one.top < SPAN[1]).map((one) => s("line", {class: "limit", x1: at(one.top, STRIP), x2: at(one.top, STRIP), y1: 0, y2: 18})),
    s("circle", {class: "fill", cx: Math.max(5, Math.min(STRIP - 5, at(exponent, STRIP))), cy: 9, r: 5}));
}
function ranges() {
  const width = 720, from = 96, room = width - from - 12, rows = DATA.ranges;
  const x = (exponent) => from + at(exponent, room);
  return s("svg", {class: "plot ranges", viewBox: `0 0 ${width} ${rows.length * 24 + 26}`, role: "img", "aria-label": rows.map((one) => `${one.name} reaches ${short(one.max)}, its smallest number is 2 to the ${one.smallest}`).join("; ")},
    rows.map((one, index) => [
      s("text", {x: 0, y: index * 24 + 16}, one.name),
      s("rect", {class: `band sub`, x: x(one.smallest), width: Math.max(0, x(one.normal) - x(one.smallest)), y: index * 24 + 4, height: 16, rx: 2}),
      s("rect", {class: "band", x: x(one.normal), width: x(one.top) - x(one.normal), y: index * 24 + 4, height: 16, rx: 2}),
      s("text", {x: Math.min(x(one.top) + 6, width - 76), y: index * 24 + 16}, one.top > SPAN[1] ? `up to ${power(128)}` : short(one.max)),
    ]),
    [-30, -20, -10, 0, 10, 20, 30].map((exponent) => [
      s("line", {class: "grid", x1: x(exponent), x2: x(exponent), y1: rows.length * 24 + 4, y2: rows.length * 24 + 9}),
      s("text", {x: x(exponent), y: rows.length * 24 + 22, "text-anchor": "middle"}, power(exponent))]));
}
function inModules(row) {
  const names = row.modules.filter(Boolean);
  return names.length ? ` in ${names.slice(0, 1).join(", ")}${row.modules.length + row.more > 1 ? ` (+${row.modules.length + row.more - 1})` : ""}` : "";
}
const operator = {title: "Operator", value: (row) => row.op, text: (row) => `${row.op} ${row.text} ${row.place} ${row.modules.join(" ")} ${row.phase}`,
  show: (row) => [h("code", {}, row.text || row.op), h("div", {class: "where"}, `${row.op}${row.phase === "backward" ? ", backward" : ""}, ${row.place}${inModules(row)}`)]};
function magnitudes() {
  if (!DATA.lines.length) return null;
  const fits = (name) => { const range = DATA.ranges.find((one) => one.name === name); return {
    title: name.replace("float8_", ""), num: true, value: (row) => row.reach / range.max,
    show: (row) => row.reach > range.max ? h("span", {class: "over"}, "overflows") : h("span", {class: "fits"}, row.reach > range.max / 1000 ? percent(row.reach / range.max) : "fits")}; };
  const rows = table("The largest finite magnitude of each operator's results over the run, and the share of each dtype's limit that it takes.", [
    operator,
    {title: "dtype", value: (row) => row.to, show: (row) => dtypeMark(row.to)},
    {title: "Largest", num: true, value: (row) => row.reach, show: (row) => short(row.reach)},
    {title: `${power(SPAN[0])} to ${power(SPAN[1])}`, fixed: true, value: (row) => row.reach, text: () => "", show: strip},
    fits("float16"), fits("float8_e5m2"), fits("float8_e4m3"),
    {title: "Not finite", num: true, value: (row) => row.bad, show: (row) => row.bad ? h("span", {class: "over"}, number(row.bad)) : "0"},
  ], DATA.lines, [2, true], (row) => row.frame.length ? () => frame(row.frame) : null);
  const dtypes = [...new Set(DATA.lines.map((row) => row.to))].sort();
  return section("magnitudes", "Magnitudes", DATA.lines.length,
    "Dark bars are the normal numbers of a dtype, light ones its subnormal numbers, which lose precision. What overflows in float8 needs a scale.",
    ranges(), h("div", {class: "controls"}, search("Operator, file or module", rows.filter),
      dtypes.length > 1 && choice("dtype", [["", "All"], ...dtypes.map((one) => [one, one])], "", (value) => rows.only((row) => !value || row.to === value)), rows.tally), rows.element, leftOut(DATA.left_out[0]));
}
const leftOut = (count) => count ? h("p", {class: "tally"}, `${plural(count, "row")} with smaller numbers left out.`) : null;

// -- casts and promotions

function casts() {
  if (!DATA.casts.length) return null;
  const rows = table("Each line of source that changed a dtype. A promotion is a result wider than one of its operands.", [
    operator,
    {title: "What", value: (row) => row.kind, show: (row) => [row.kind, row.by && h("div", {class: "where"}, "by ", rich(row.by))], text: (row) => `${row.kind} ${row.by}`},
    {title: "From", value: (row) => row.from, show: (row) => row.from.split(" and ").map((one) => h("div", {}, dtypeMark(one)))},
    {title: "To", value: (row) => row.to, show: (row) => row.to && dtypeMark(row.to)},
    {title: "Calls", num: true, value: (row) => row.calls, show: (row) => number(row.calls)},
    {title: "Moved", num: true, value: (row) => row.bytes, show: (row) => row.bytes ? bytes(row.bytes) : ""},
    {title: "Lost to 0", num: true, value: (row) => row.lost, show: (row) => row.lost === null ? "" : row.lost > 0.01 ? h("span", {class: "over"}, percent(row.lost)) : percent(row.lost)},
    {title: "Undone", num: true, value: (row) => row.undone, show: (row) => row.undone ? number(row.undone) : ""},
  ], DATA.casts, [4, true], (row) => row.frame.length ? () => frame(row.frame) : null);
  const promotions = DATA.casts.filter((row) => !row.kind.startsWith("cast")).length;
  return section("casts", "Casts and promotions", DATA.casts.length, null,
    h("div", {class: "controls"}, search("Operator, file, module or dtype", rows.filter),
      promotions > 0 && promotions < DATA.casts.length && choice("Show", [["", "All"], ["p", `Promotions (${number(promotions)})`], ["c", `Casts (${number(DATA.casts.length - promotions)})`]], "", (value) => rows.only((row) => !value || (value === "c") === row.kind.startsWith("cast"))), rows.tally),
    rows.element, leftOut(DATA.left_out[1]));
}

// -- the scaler, memory, what was not seen

function scaler() {
  const scaler = DATA.scaler;
  if (!scaler) return null;
  const parts = [], width = 1080, height = 200, left = 64, bottom = 28;
  if (scaler.changes.length) {
    const logs = scaler.changes.map(([, scale]) => Math.log2(scale)), low = Math.floor(Math.min(...logs)) - 1, high = Math.ceil(Math.max(...logs)) + 1;
    const x = (update) => left + update / Math.max(scaler.updates, 1) * (width - left - 12), y = (log) => 8 + (high - log) / (high - low) * (height - bottom - 8);
    const path = scaler.changes.map(([update, scale], index) => `${index ? `H${x(update)}V` : `M${x(update)} `}${y(Math.log2(scale))}`).join("") + `H${x(scaler.updates)}`;
    const each = Math.max(1, Math.ceil((high - low) / 6)), every = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 1e4, 1e5].find((size) => scaler.updates / size <= 12) || 1e6;
    const levels = [], marks = [];
    for (let log = low; log <= high; log += each) levels.push(s("line", {class: "grid", x1: left, x2: width - 12, y1: y(log), y2: y(log)}), s("text", {x: left - 10, y: y(log) + 4, "text-anchor": "end"}, power(log)));
    for (let update = 0; update < scaler.updates; update += every) marks.push(s("text", {x: x(update), y: height - 8, "text-anchor": "middle"}, update === 0 ? "step 1" : number(update + 1)));
    parts.push(s("svg", {class: "plot", viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `The scale went from ${short(scaler.changes[0][1])} to ${short(scaler.scale ?? scaler.changes[scaler.changes.length - 1][1])}; ${plural(scaler.skipped, "step")} skipped. The table has each change.`},
      levels, s("path", {class: "trace", d: path}), scaler.skips.map((step) => s("line", {class: "skipped", x1: x(step + 0.5), x2: x(step + 0.5), y1: height - bottom - 10, y2: height - bottom})), marks));
    const rows = table("Each change of the scale.", [
      {title: "Step", num: true, value: (row) => row[0], show: (row) => number(row[0] + 1)},
      {title: "Scale", num: true, value: (row) => row[1], show: (row) => number(row[1])},
      {title: "", fixed: true, value: (row) => row[2], show: (row) => row[2]},
    ], scaler.changes.map(([update, scale], index, all) => [update, scale, !index ? "after the first step" : scale < all[index - 1][1] ? "lower: the step was skipped" : "higher: no overflow for a while"]), [0, false]);
    parts.push(h("details", {}, h("summary", {}, "The scale as a table"), rows.element));
  }
  return section("scaler", "GradScaler", null, `${plural(scaler.skipped, "step")} of ${number(scaler.updates)} skipped${scaler.scale === null ? "" : `; the scale ended at ${number(scaler.scale)}, and was never below ${number(scaler.lowest)}`}. Red ticks are skipped steps.`, parts);
}
function memory() {
  if (!DATA.memory.length) return null;
  const kinds = new Map();
  for (const [what, dtype, size] of DATA.memory) kinds.set(what, [...(kinds.get(what) || []), [dtype, size]]);
  const most = Math.max(...[...kinds.values()].map((held) => held.reduce((sum, [, size]) => sum + size, 0)));
  const bars = [...kinds.entries()].map(([what, held]) => {
    const total = held.reduce((sum, [, size]) => sum + size, 0);
    let from = 0;
    return [h("div", {}, what), s("svg", {viewBox: "0 0 1000 18", preserveAspectRatio: "none", "aria-hidden": "true"}, held.map(([dtype, size]) => {
      const rect = s("rect", {class: `fill ${family(dtype)}`, x: from, width: size / most * 1000, height: 18});
      from += size / most * 1000;
      return rect;
    })), h("div", {class: "num"}, bytes(total))];
  });
  const rows = table("Bytes in the step that held most.", [
    {title: "What", value: (row) => row[0]}, {title: "dtype", value: (row) => row[1], show: (row) => dtypeMark(row[1])},
    {title: "Size", num: true, value: (row) => row[2], show: (row) => bytes(row[2])},
  ], DATA.memory, [2, true]);
  return section("memory", "Memory by dtype", null, "What a training step keeps, where it held most.", h("div", {class: "bars"}, bars), rows.element);
}
function unseen() {
  if (!DATA.unseen.length) return null;
  return section("unseen", "Not seen", DATA.unseen.length, "Parts of the program that this trace does not show.",
    table("What was passed over, how often, and where it was met first.", [
      {title: "What", value: (row) => row[0]}, {title: "Times", num: true, value: (row) => row[1], show: (row) => number(row[1])}, {title: "First", value: (row) => row[2], show: (row) => h("code", {}, row[2])},
    ], DATA.unseen, [1, true]).element);
}

// -- the page

function byRule() {
  const counts = new Map();
  for (const finding of DATA.findings) {
    const row = counts.get(finding.code) || {code: finding.code, name: finding.name, severity: finding.severity, count: 0, files: new Set()};
    row.count += 1; row.files.add(finding.path); counts.set(finding.code, row);
  }
  if (counts.size < 2) return null;
  return section("rules", "Rules", counts.size, null, table("How often each rule found something.", [
    {title: "Rule", value: (row) => row.code, text: (row) => `${row.code} ${row.name}`, show: (row) => `${row.code} ${row.name}`},
    {title: "Worst", value: (row) => row.severity, show: (row) => h("span", {class: `badge ${row.severity}`}, row.severity)},
    {title: "Findings", num: true, value: (row) => row.count, show: (row) => number(row.count)},
    {title: "Files", num: true, value: (row) => row.files.size, show: (row) => number(row.files.size)},
    {title: "What it finds", fixed: true, value: (row) => (DATA.rules[row.code] || {}).summary || "", show: (row) => rich((DATA.rules[row.code] || {}).summary || "")},
  ], [...counts.values()], [2, true]).element);
}
const main = document.getElementById("main");
document.getElementById("head").append(
  h("p", {class: "brand"}, DATA.kind === "check" ? "dtlint check" : "dtlint trace"), h("h1", {}, DATA.title),
  h("dl", {class: "facts"}, DATA.facts.map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, typeof value === "number" ? number(value) : value)))));
const parts = DATA.kind === "check"
  ? [DATA.findings.length ? null : h("div", {class: "start ok"}, h("p", {class: "eyebrow"}, "All checks passed"), h("h2", {}, "Nothing was found")), byRule(), DATA.findings.length ? findings() : null]
  : [start(), answers(), modules(), magnitudes(), casts(), scaler(), memory(), DATA.findings.length ? findings() : null, unseen()];
main.append(...parts.filter(Boolean));
document.getElementById("nav").append(h("ul", {}, SECTIONS.map(([id, title, count]) => h("li", {}, h("a", {href: `#${id}`}, title, count !== null && h("span", {class: "count"}, number(count)))))));
if (SECTIONS.length < 2) document.getElementById("nav").hidden = true;
if (modules.ready) modules.ready();
function follow() {
  const id = location.hash.slice(1);
  if (/^f\d+$/.test(id) && !document.getElementById(id) && findings.showAll) findings.showAll();
  const target = id && document.getElementById(id);
  if (target) target.scrollIntoView();
}
window.addEventListener("hashchange", follow);
if (location.hash) follow();
window.addEventListener("beforeprint", () => document.querySelectorAll("details").forEach((one) => { one.open = true; }));
