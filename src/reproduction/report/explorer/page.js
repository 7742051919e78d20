// What every part of the page uses: tables, charts, colours and p-values as text.
// Texts are other people's: they are only ever set as text, never as markup.
const byId = (id) => document.getElementById(id);
const dark = matchMedia("(prefers-color-scheme: dark)").matches;
const narrow = matchMedia("(max-width: 40rem)").matches;

// --- tables ----------------------------------------------------------------------------------------

/** On a narrow screen a row is a card, in which every cell names its column. */
function nameCells(row, columns) {
  [...row.cells].forEach((cell, i) => {
    cell.dataset.label = columns[i].title;
  });
}

function table(id, { columns, rows = [] }, { createdRow, ...options } = {}) {
  const shown = columns.map((column) => ({ render: DataTable.render.text(), ...column }));
  byId(id).classList.add("cards");
  return new DataTable(`#${id}`, {
    data: rows,
    columns: shown,
    order: [],
    autoWidth: false,
    createdRow: (row, data, index) => {
      nameCells(row, columns);
      createdRow?.(row, index);
    },
    ...options,
  });
}

function fillTable(filled, rows) {
  filled.clear().rows.add(rows).draw();
}

/** Prints all rows of a table: nobody turns its pages on paper. */
function printWhole(list) {
  let length;
  let page;
  addEventListener("beforeprint", () => {
    length = list.page.len();
    page = list.page();
    list.page.len(-1).draw();
  });
  addEventListener("afterprint", () => list.page.len(length).page(page).draw("page"));
}

/** Rows that Enter opens as a click does. */
function selectable(id, content, options) {
  const made = table(id, content, { select: { style: "single", info: false }, keys: true, ...options });
  made.on("key", (event, dt, code, cell) => {
    if (code === 13) made.row(cell.index().row).select();
  });
  return made;
}

function textElement(tag, text) {
  const element = document.createElement(tag);
  element.textContent = text;
  return element;
}

/** A table without search and pages. A cell is a text, or { text, data } with data for programs. */
function fillPlainTable(id, titles, rows) {
  const head = document.createElement("thead");
  head.append(document.createElement("tr"));
  head.firstChild.append(...titles.map((title) => textElement("th", title)));
  const body = document.createElement("tbody");
  for (const cells of rows) {
    const row = document.createElement("tr");
    for (const cell of cells) {
      const element = textElement("td", cell.text ?? cell);
      Object.assign(element.dataset, cell.data ?? {});
      row.append(element);
    }
    nameCells(row, titles.map((title) => ({ title })));
    body.append(row);
  }
  byId(id).classList.add("cards", "plain");
  byId(id).replaceChildren(head, body);
}

// --- charts ----------------------------------------------------------------------------------------

/** The same colour, light enough for a dark page. */
function visible(colour) {
  if (!dark) return colour;
  const parts = [1, 3, 5].map((start) => parseInt(colour.slice(start, start + 2), 16));
  const lighter = parts.map((part) => Math.round(part + (255 - part) * 0.5));
  return `rgb(${lighter.join(",")})`;
}

function draw(id, spec) {
  const ink = dark ? "#e6e9ed" : "#1b1f24";
  const line = dark ? "#3a424c" : "#d8dde3";
  const axis = { labelColor: ink, titleColor: ink, gridColor: line, domainColor: line, tickColor: line, labelFontSize: 11 };
  const config = { axis, legend: { labelColor: ink, labelLimit: 260 }, view: { stroke: null }, text: { color: ink } };
  const options = { actions: false, ast: true, renderer: "svg" };
  const shared = { $schema: "https://vega.github.io/schema/vega-lite/v6.json", width: "container", height: 240, background: "transparent", config };
  return vegaEmbed(`#${id}`, { ...shared, ...spec }, options);
}

// --- p-values --------------------------------------------------------------------------------------

const SUPERSCRIPTS = "⁰¹²³⁴⁵⁶⁷⁸⁹";

/** Three decimals down to 0.001, powers of ten below, as in the tables of the report. */
function formatP(log10P) {
  if (!Number.isFinite(log10P)) return "—";
  if (log10P >= -3) return (10 ** log10P).toFixed(3);
  let power = Math.floor(log10P);
  let mantissa = (10 ** (log10P - power)).toFixed(1);
  if (mantissa === "10.0") {
    power += 1;
    mantissa = "1.0";
  }
  return `${mantissa} × 10⁻${superscript(-power)}`;
}

function superscript(count) {
  return [...String(count)].map((digit) => SUPERSCRIPTS[digit]).join("");
}
