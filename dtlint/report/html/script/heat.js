// The map of modules over steps: one row for each module, drawn on a canvas as far as it is in view.

const ROW = 18;
const MOST_ROWS_IN_VIEW = 26;
const NOTHING = -2000;
const [COLUMNS, EXPONENT, LOST, NONFINITE, CALLS] = [0, 1, 2, 3, 4];
// Exponents of float16's smallest number and of its limit: the ends of the ramp.
const [LOW, TOP] = [-24, 16];
const SHADES = TOP - LOW + 1;
const METRICS = [
  ["dtypes", "dtypes"],
  ["magnitude", "Largest magnitude"],
  ["lost", "Lost to 0"],
  ["nonfinite", "Not finite"],
];
const MOVES = {
  ArrowUp: [-1, 0],
  ArrowDown: [1, 0],
  ArrowLeft: [0, -1],
  ArrowRight: [0, 1],
  PageUp: [-20, 0],
  PageDown: [20, 0],
  Home: [0, -Infinity],
  End: [0, Infinity],
};

function mix(from, to, share) {
  const parse = (hex) => [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
  const [a, b] = [parse(from), parse(to)];
  return `rgb(${a.map((value, index) => Math.round(value + (b[index] - value) * share)).join()})`;
}
const ramp = () =>
  Array.from({ length: SHADES }, (_, index) => mix(colour("cold"), colour("hot"), index / (SHADES - 1)));
const within = (value, least, most) => Math.max(least, Math.min(most, value));

class Heat {
  constructor(rows, starts) {
    this.rows = rows;
    this.starts = starts;
    this.shown = [];
    this.metric = rows.some((row) => row.births.length) ? "magnitude" : "dtypes";
    this.backward = rows.some((row) => !row.backward) ? 0 : 1;
    this.words = [];
    this.row = this.column = 0;
    this.left = this.plot = 0;
    this.pending = false;
    this.canvas = h("canvas");
    this.axis = h("canvas", { class: "axis", "aria-hidden": "true" });
    this.space = h("div", {}, this.canvas);
    this.legend = h("div", { class: "legend" });
    this.readout = h("output", { class: "readout", id: "readout" });
    this.tally = h("span", { class: "tally", role: "status" });
    this.element = h(
      "div",
      {
        class: "heat",
        tabindex: 0,
        role: "application",
        "aria-label":
          "Modules by step. Arrow keys move from cell to cell; the text below says what is there. The totals have the same numbers.",
        "aria-describedby": "readout",
        onscroll: () => this.soon(),
        onkeydown: (event) => this.move(event),
        onmousemove: (event) => this.point(event),
        onfocus: () => this.soon(),
        onblur: () => this.soon(),
      },
      this.space,
    );
    new ResizeObserver(() => this.layout()).observe(this.element);
    window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.show(this.metric));
  }

  // -- what is shown

  pick() {
    const all = this.rows.filter((row) => row.backward === this.backward);
    this.shown = all.filter((row) => matches(row.$, this.words));
    this.row = within(this.row, 0, Math.max(this.shown.length - 1, 0));
    this.tally.textContent =
      this.shown.length === all.length
        ? plural(all.length, "module")
        : `${number(this.shown.length)} of ${plural(all.length, "module")}`;
    this.explain();
    this.show(this.metric);
  }

  find(words) {
    this.words = words;
    this.element.scrollTop = this.row = 0;
    this.pick();
  }

  show(metric) {
    this.metric = metric;
    this.legend.replaceChildren(...this.marks());
    this.layout();
  }

  // The column that holds a step.
  at(step) {
    let [low, high] = [0, this.starts.length - 1];
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.starts[middle] <= step) low = middle;
      else high = middle - 1;
    }
    return low;
  }

  steps(column) {
    if (DATA.steps === 0) return "the whole run";
    const first = this.starts[column] + 1;
    const last = column + 1 < this.starts.length ? this.starts[column + 1] : Math.max(DATA.steps, first);
    return last > first ? `steps ${number(first)} to ${number(last)}` : `step ${number(first)}`;
  }

  explain() {
    const row = this.shown[this.row];
    if (!row) {
      this.readout.replaceChildren(h("span", { class: "hint" }, "No module has that in its name."));
      return;
    }
    let column = this.column;
    const run = row.runs.find((one) => (column -= one[COLUMNS]) < 0);
    const calls = run
      ? row.dtypes.map((dtype, index) => [dtype, run[CALLS + index] || 0]).filter(([, count]) => count)
      : [];
    const said = [calls.map(([dtype, count]) => `${plural(count, "result")} in ${dtype}`).join(", ") || "nothing ran"];
    if (calls.length && run[EXPONENT] !== NOTHING)
      said.push(`magnitudes below ${power(run[EXPONENT])} (${short(2 ** run[EXPONENT])})`);
    if (calls.length && run[LOST] >= 0) said.push(`${percent(run[LOST] / 1000)} of values lost to 0 in casts`);
    if (calls.length && run[NONFINITE]) said.push(`${plural(run[NONFINITE], "result")} not finite`);
    const born = row.births.filter((event) => this.at(event.step) === this.column);
    this.readout.replaceChildren(
      h("b", {}, named(row.module)),
      ` ${row.backward ? "backward, " : ""}${this.steps(this.column)}: ${said.join("; ")}`,
      ...born.map((event) => h("div", { class: "over" }, `Born here: ${event.kind}, ${event.what} at ${event.place}`)),
    );
  }

  // What the colours mean.
  marks() {
    const patch = (name, text) =>
      h(
        "span",
        {},
        s(
          "svg",
          { width: 10, height: 10, "aria-hidden": "true" },
          s("rect", { width: 10, height: 10, rx: 2, fill: colour(name) }),
        ),
        text,
      );
    const marks = [];
    if (this.metric === "dtypes") {
      const used = new Set(this.rows.flatMap((row) => row.dtypes.map(family)));
      for (const name of FAMILIES.filter((one) => used.has(one)))
        marks.push(
          h("span", { class: `dtype ${name}` }, h("span", { class: "swatch" }), name === "other" ? "no float" : name),
        );
    } else if (this.metric === "magnitude") {
      const wide = 160 / SHADES;
      const bars = ramp().map((fill, index) => s("rect", { x: index * wide, width: wide + 0.5, height: 12, fill }));
      marks.push(
        h(
          "span",
          {},
          `${power(LOW)} `,
          s("svg", { class: "ramp", width: 160, height: 12, "aria-hidden": "true" }, bars),
          " 65504",
        ),
        patch("float64", " beyond float16"),
        patch("bad", " inf or NaN"),
      );
    } else if (this.metric === "lost") {
      marks.push(h("span", {}, "The share of values that a cast to a narrower dtype turned into 0; darker is more"));
    } else marks.push(patch("bad", " a result held inf or NaN"));
    if (this.rows.some((row) => row.births.length)) marks.push(h("span", {}, "\u2715 a non-finite value is born"));
    return marks;
  }

  // -- moving

  move(event) {
    const by = MOVES[event.key];
    if (!by || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    this.row = within(this.row + by[0], 0, this.shown.length - 1);
    this.column = within(this.column + by[1], 0, this.starts.length - 1);
    const [view, y] = [this.element, this.row * ROW];
    view.scrollTop = within(view.scrollTop, y + ROW - view.clientHeight, y);
    this.explain();
    this.soon();
  }

  point(event) {
    const box = this.element.getBoundingClientRect();
    const [x, y] = [event.clientX - box.left - this.left, event.clientY - box.top + this.element.scrollTop];
    if (x < 0 || x >= this.plot) return;
    this.row = within(Math.floor(y / ROW), 0, this.shown.length - 1);
    this.column = within(Math.floor((x * this.starts.length) / this.plot), 0, this.starts.length - 1);
    this.explain();
    this.soon();
  }

  // -- drawing

  layout() {
    const context = this.canvas.getContext("2d");
    context.font = this.font();
    const names = this.shown.slice(0, 400).map((row) => context.measureText(named(row.module)).width);
    this.left = Math.min(Math.max(60, ...names) + 28, Math.max(120, this.element.clientWidth * 0.32));
    this.element.style.height = `${within(this.shown.length, 1, MOST_ROWS_IN_VIEW) * ROW + 2}px`;
    this.space.style.height = `${this.shown.length * ROW}px`;
    this.plot = this.element.clientWidth - this.left - 12;
    this.paint();
    this.ticks();
  }

  font() {
    return `12px ${getComputedStyle(this.element).getPropertyValue("font-family")}`;
  }

  // A context in units of the page, for a canvas of this size.
  context(canvas, height) {
    const [width, ratio] = [this.element.clientWidth, window.devicePixelRatio || 1];
    [canvas.width, canvas.height] = [width * ratio, height * ratio];
    [canvas.style.width, canvas.style.height] = [`${width}px`, `${height}px`];
    const context = canvas.getContext("2d");
    context.scale(ratio, ratio);
    context.font = this.font();
    context.textBaseline = "middle";
    return context;
  }

  // Where a column begins.
  x(column) {
    return this.left + (column * this.plot) / this.starts.length;
  }

  soon() {
    if (this.pending) return;
    this.pending = true;
    requestAnimationFrame(() => this.paint());
  }

  paint() {
    this.pending = false;
    const [top, height] = [this.element.scrollTop, this.element.clientHeight];
    const context = this.context(this.canvas, height);
    const names = ["fg", "bg", "error", "bad", "grid", "loss", "accent", "cold", ...FAMILIES];
    const paints = { ...Object.fromEntries(names.map((name) => [name, colour(name)])), ramp: ramp() };
    const focused = document.activeElement === this.element;
    const first = Math.floor(top / ROW);
    this.shown.slice(first, first + Math.ceil(height / ROW) + 1).forEach((row, index) => {
      const y = (first + index) * ROW - top;
      context.fillStyle = paints[focused && first + index === this.row ? "accent" : row.births.length ? "error" : "fg"];
      this.label(context, named(row.module), y + ROW / 2);
      context.fillStyle = paints.grid;
      context.fillRect(this.left, y + 1, this.plot, ROW - 2);
      let column = 0;
      for (const run of row.runs) {
        const x = Math.round(this.x(column));
        column += run[COLUMNS];
        this.cell(
          context,
          row,
          run,
          { x, y: y + 1, width: Math.max(Math.round(this.x(column)) - x, 1), height: ROW - 2 },
          paints,
        );
      }
      for (const event of row.births) this.cross(context, this.x(this.at(event.step) + 0.5), y + ROW / 2, paints);
    });
    if (focused && this.shown.length) {
      [context.strokeStyle, context.lineWidth] = [paints.accent, 2];
      context.strokeRect(
        this.x(this.column) - 1,
        this.row * ROW - top,
        Math.max(this.plot / this.starts.length, 4) + 2,
        ROW,
      );
    }
  }

  label(context, text, y) {
    while (context.measureText(text).width > this.left - 20 && text.length > 4) text = `\u2026${text.slice(2)}`;
    context.fillText(text, 12, y);
  }

  cell(context, row, run, box, paints) {
    const fill = (style, y = box.y, height = box.height) => {
      context.fillStyle = style;
      context.fillRect(box.x, y, box.width, height);
    };
    if (this.metric === "dtypes") {
      let y = box.y;
      for (const [name, share] of shares(row, run)) {
        fill(paints[name], y, box.height * share);
        y += box.height * share;
      }
    } else if (this.metric === "magnitude") {
      const top = run[EXPONENT];
      if (top !== NOTHING) fill(top > TOP ? paints.float64 : paints.ramp[within(top - LOW, 0, SHADES - 1)]);
      const part = top === NOTHING ? box.height : 5;
      if (run[NONFINITE]) fill(paints.bad, box.y + box.height - part, part);
    } else if (this.metric === "lost") {
      if (run[LOST] >= 0)
        fill(run[LOST] ? mix(paints.cold, paints.loss, Math.min(1, 0.15 + run[LOST] / 500)) : paints.cold);
    } else if (run.slice(CALLS).some(Boolean)) fill(run[NONFINITE] ? paints.bad : paints.cold);
  }

  cross(context, x, y, paints) {
    for (const [style, width] of [
      [paints.bg, 5],
      [paints.fg, 2],
    ]) {
      [context.strokeStyle, context.lineWidth] = [style, width];
      context.beginPath();
      context.moveTo(x - 4, y - 4);
      context.lineTo(x + 4, y + 4);
      context.moveTo(x + 4, y - 4);
      context.lineTo(x - 4, y + 4);
      context.stroke();
    }
  }

  ticks() {
    const context = this.context(this.axis, 18);
    context.fillStyle = colour("muted");
    context.fillText("Module", 12, 9);
    const each = round(DATA.steps / Math.max(2, this.plot / 70));
    let free = -1;
    for (let step = 1; step <= DATA.steps; step = step === 1 && each > 1 ? each : step + each) {
      const [x, text] = [this.x(this.at(step - 1)), step === 1 ? "step 1" : number(step)];
      if (x <= free || x + 30 >= this.element.clientWidth) continue;
      context.fillText(text, x, 9);
      free = x + context.measureText(text).width + 12;
    }
  }
}

// The next of 1, 2, 5, 10, 20, 50 and so on.
function round(size) {
  const unit = 10 ** Math.max(0, Math.floor(Math.log10(Math.max(size, 1))));
  return unit * [1, 2, 5, 10].find((factor) => factor * unit >= size);
}

// Of a run: its families of floats, or what is no float where there are none, each with its share of the calls.
function shares(row, run) {
  const counts = new Map();
  row.dtypes.forEach((dtype, index) =>
    counts.set(family(dtype), (counts.get(family(dtype)) || 0) + (run[CALLS + index] || 0)),
  );
  const floats = FAMILIES.filter((name) => name !== "other" && counts.get(name));
  const names = floats.length ? floats : counts.get("other") ? ["other"] : [];
  const total = names.reduce((sum, name) => sum + counts.get(name), 0);
  return names.map((name) => [name, counts.get(name) / total]);
}
