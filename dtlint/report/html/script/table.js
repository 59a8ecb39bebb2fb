// What a long list is read with: a field that filters, buttons of which one is chosen, tables that sort.

const FIRST = 15;

function search(label, onchange) {
  const input = h("input", {
    type: "search",
    id: `q${(search.count = (search.count || 0) + 1)}`,
    placeholder: "Filter",
    autocomplete: "off",
    spellcheck: "false",
  });
  input.addEventListener("input", () => onchange(input.value.trim().toLowerCase().split(/\s+/).filter(Boolean)));
  return [h("label", { for: input.id }, label), input];
}
const matches = (text, words) => words.every((word) => text.includes(word));

function choice(label, options, chosen, onchange) {
  const buttons = options.map(([value, text]) =>
    h(
      "button",
      {
        type: "button",
        "aria-pressed": String(value === chosen),
        onclick: () => {
          buttons.forEach((button, index) => button.setAttribute("aria-pressed", String(options[index][0] === value)));
          onchange(value);
        },
      },
      text,
    ),
  );
  return h("fieldset", {}, h("legend", {}, label), h("span", { class: "choice" }, buttons));
}

// A table that sorts by its headings and shows the first rows until more are asked for.
function table(caption, columns, rows, sorted, detail) {
  let shown = FIRST,
    words = [],
    keep = () => true,
    [by, down] = sorted;
  const body = h("tbody"),
    foot = h("div", { class: "more" }),
    tally = h("span", { class: "tally", role: "status" });
  for (const row of rows)
    row.$ = columns
      .map((column) => String(column.text ? column.text(row) : (column.value(row) ?? "")))
      .join(" ")
      .toLowerCase();
  const heads = columns.map((column, index) => {
    const th = h(
      "th",
      { scope: "col", class: column.num ? "num" : null },
      column.fixed
        ? column.title
        : h(
            "button",
            {
              type: "button",
              onclick: () => {
                down = by === index ? !down : Boolean(column.num);
                by = index;
                draw();
              },
            },
            column.title,
          ),
    );
    return th;
  });
  function draw() {
    heads.forEach((th, index) =>
      index === by ? th.setAttribute("aria-sort", down ? "descending" : "ascending") : th.removeAttribute("aria-sort"),
    );
    const value = columns[by].value,
      found = rows.filter((row) => matches(row.$, words) && keep(row));
    found.sort((a, b) => {
      const x = value(a) ?? -Infinity,
        y = value(b) ?? -Infinity;
      return (x < y ? -1 : x > y ? 1 : 0) * (down ? -1 : 1);
    });
    body.replaceChildren(...found.slice(0, shown).map(line));
    foot.replaceChildren(
      ...(found.length > shown
        ? [
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
          ]
        : []),
    );
    foot.hidden = found.length <= shown;
    tally.textContent =
      found.length === rows.length
        ? plural(rows.length, "row")
        : `${number(found.length)} of ${plural(rows.length, "row")}`;
  }
  function line(row) {
    const more = detail && detail(row);
    let opened = null;
    const tr = h(
      "tr",
      {},
      columns.map((column, index) => {
        let content = column.show ? column.show(row) : (column.value(row) ?? "");
        if (index === 0 && more) {
          content = h(
            "button",
            {
              type: "button",
              class: "opener",
              "aria-expanded": "false",
              onclick: (event) => {
                const button = event.currentTarget,
                  open = button.getAttribute("aria-expanded") === "false";
                button.setAttribute("aria-expanded", String(open));
                if (open)
                  tr.after((opened = h("tr", { class: "detail" }, h("td", { colspan: columns.length }, more()))));
                else opened.remove();
              },
            },
            h("span", {}, content),
          );
        }
        return h(
          index === 0 ? "th" : "td",
          { class: column.num ? "num" : null, scope: index === 0 ? "row" : null },
          content,
        );
      }),
    );
    return tr;
  }
  draw();
  return {
    tally,
    filter: (given) => {
      words = given;
      shown = FIRST;
      draw();
    },
    only: (test) => {
      keep = test;
      shown = FIRST;
      draw();
    },
    element: h(
      "div",
      { class: "scroll" },
      h("table", {}, h("caption", {}, caption), h("thead", {}, h("tr", {}, heads)), body),
      foot,
    ),
  };
}
