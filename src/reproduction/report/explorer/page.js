// Tables and charts of the page: what the other modules of this package computed. Texts are other people's: they are only ever set as text, never as markup.
const byId = (id) => document.getElementById(id);
const dark = matchMedia("(prefers-color-scheme: dark)").matches;

function table(id, { columns, rows = [] }, options = {}) {
  const shown = columns.map((column) => ({ render: DataTable.render.text(), ...column }));
  return new DataTable(`#${id}`, { data: rows, columns: shown, order: [], scrollX: true, ...options });
}
const fillTable = (filled, rows) => filled.clear().rows.add(rows).draw();

/** Rows that Enter opens as a click does. */
function selectable(id, content, options) {
  const made = table(id, content, { select: { style: "single", info: false }, keys: true, ...options });
  made.on("key", (event, dt, code, cell) => code === 13 && made.row(cell.index().row).select());
  return made;
}

function draw(id, spec) {
  const frame = { width: "container", height: 220, background: "transparent", ...spec };
  const options = { actions: false, ast: true, renderer: "svg", theme: dark ? "dark" : undefined };
  return vegaEmbed(`#${id}`, { $schema: "https://vega.github.io/schema/vega-lite/v6.json", ...frame }, options);
}

// --- MMLU ------------------------------------------------------------------------------------------

function showMmlu(mmlu, showExamples) {
  const list = selectable("subsets", mmlu.table, { pageLength: 10 });
  list.on("select", (event, dt, kind, [index]) => {
    const texts = mmlu.at_hand[mmlu.names[index]];
    if (texts) showExamples(texts, mmlu.table.rows[index][0]);
  });
  byId("source").textContent = mmlu.source;
  table("fisher", mmlu.fisher, { paging: false, searching: false, info: false, ordering: false, scrollX: false });
  const share = { field: "share", type: "quantitative", scale: { domain: [0, 1] }, axis: { format: "%" }, title: "subsets" };
  const x = { field: "p", type: "quantitative", scale: { domain: [0, 1] }, title: "p-value" };
  const names = mmlu.curves.map((curve) => curve.name);
  const color = { field: "name", title: null, scale: { domain: names, range: mmlu.curves.map((curve) => curve.colour) }, legend: { orient: "bottom", columns: 3 } };
  draw("ecdf", {
    layer: [
      { data: { values: mmlu.band },
        mark: { type: "area", color: "#888", opacity: 0.2 }, encoding: { x, y: { ...share, field: "low" }, y2: { field: "high" } } },
      { data: { values: mmlu.band }, mark: { type: "line", strokeDash: [5, 4], color: "#888" }, encoding: { x, y: { ...share, field: "p" } } },
      { data: { values: mmlu.curves.flatMap(({ name, points }) => points.map(([p, height]) => ({ name, p, share: height }))) },
        mark: { type: "line", interpolate: "step-after" }, encoding: { x, y: share, color } },
    ],
  });
}

// --- what the run has scored -----------------------------------------------------------------------

function showResults({ results, outcomes, sets }, showExamples) {
  const list = selectable("results", results, { pageLength: 10 });

  list.on("select", (event, dt, kind, [index]) => {
    const outcome = outcomes[index];
    byId("reading").textContent = outcome.reading;
    byId("reading").style.borderColor = outcome.colour;
    byId("reasons").textContent = outcome.reasons;
    const [model, name] = results.rows[index];
    const search = showExamples(sets[outcome.set], `${name} under ${model}`, outcome);
    drawOutcome(outcome, search);
  });

  async function drawOutcome(outcome, search) {
    const values = outcome.by_shard.map((value, i) => ({ shard: i + 1, value }));
    const y = { field: "value", type: "quantitative", title: outcome.unit };
    const { view } = await draw("shards", { data: { values }, layer: [
      { mark: { type: "bar", color: outcome.colour, tooltip: true, cursor: "pointer" }, encoding: { x: { field: "shard", type: "ordinal", axis: { labelOverlap: true, labelAngle: 0 } }, y } },
      { mark: { type: "rule", strokeDash: [5, 4] }, encoding: { y: { ...y, aggregate: "mean" } } },
    ] });
    view.addEventListener("click", (event, item) => item?.datum?.shard && search(item.datum.shard));
  }
  list.row({ search: "applied" }).select();
}

// --- the examples ----------------------------------------------------------------------------------

function exampleTable() {
  const columns = ["Example", "Shard", "Evidence", "Text"].map((title, i) => ({ title, width: i < 3 ? "4rem" : undefined }));
  const list = table("examples", { columns }, { pageLength: 10 });
  return (texts, whose, outcome) => {
    const shard = (i) => outcome && outcome.starts.findLastIndex((start) => start <= i) + 1;
    byId("whose").textContent = `${whose}: ${texts.length} examples${outcome ? `; evidence is the ${outcome.unit} of a shard` : ""}.`;
    list.search("").column(1).search("");
    fillTable(list, texts.map((text, i) => [i + 1, shard(i) ?? "—", outcome?.by_shard[shard(i) - 1] ?? "—", text]));
    return (number) => list.column(1).search(`^${number}$`, true, false).draw();
  };
}

async function start() {
  const bytes = Uint8Array.from(atob(byId("data").textContent), (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  const data = await new Response(stream).json();
  document.documentElement.classList.toggle("dark", dark);
  document.querySelector("main").hidden = false;
  byId("title").textContent = data.title;
  const examples = exampleTable();
  showMmlu(data.mmlu, examples);
  byId("scored").hidden = !data.outcomes.length;
  if (data.outcomes.length) showResults(data, examples);
  document.body.dataset.state = "ready";
}

start().catch((error) => {
  byId("problem").hidden = false;
  byId("problem").textContent = `This page could not be read (${error}). A current Firefox, Chrome, Edge or Safari can.`;
  document.body.dataset.state = "failed";
});
