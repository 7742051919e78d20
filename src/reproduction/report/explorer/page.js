// Tables and charts of the page: what the other modules of this package computed, and what a choice
// of subsets comes to. Texts are other people's: they are only ever set as text, never as markup.
const byId = (id) => document.getElementById(id);
const dark = matchMedia("(prefers-color-scheme: dark)").matches;

function table(id, { columns, rows = [] }, options = {}) {
  const shown = columns.map((column) => ({ render: DataTable.render.text(), ...column }));
  return new DataTable(`#${id}`, { data: rows, columns: shown, order: [], scrollX: true, ...options });
}
const bare = { paging: false, searching: false, info: false, ordering: false, scrollX: false };
const fillTable = (filled, rows) => filled.clear().rows.add(rows).draw();

/** Rows that Enter opens as a click does. */
function selectable(id, content, style, options) {
  const made = table(id, content, { select: { style, info: false }, keys: true, ...options });
  made.on("key", (event, dt, code, cell) => code === 13 && made.row(cell.index().row).select());
  return made;
}

function draw(id, spec) {
  const frame = { width: "container", height: 220, background: "transparent", ...spec };
  const options = { actions: false, ast: true, renderer: "svg", theme: dark ? "dark" : undefined };
  return vegaEmbed(`#${id}`, { $schema: "https://vega.github.io/schema/vega-lite/v6.json", ...frame }, options);
}

/** Decimal logarithm of Fisher's p: a chi-squared tail with 2n degrees of freedom is a finite sum. */
function fisher(logs) {
  const half = -Math.LN10 * logs.reduce((sum, log10p) => sum + log10p, 0);
  let term = 0; // natural logarithm of half^i / i!
  const terms = logs.map((_, i) => (i ? (term += Math.log(half / i)) : term));
  const most = Math.max(...terms);
  const sum = terms.reduce((total, one) => total + Math.exp(one - most), 0);
  return Math.min(0, (most + Math.log(sum) - half) / Math.LN10);
}

function fisherText(logs) {
  if (!logs.length) return "—";
  const log10p = fisher(logs);
  const power = Math.floor(log10p);
  return log10p > -3 ? (10 ** log10p).toFixed(3) : `${(10 ** (log10p - power)).toFixed(1)}e${power}`;
}

// --- MMLU ------------------------------------------------------------------------------------------

function showMmlu(mmlu, showExamples) {
  const list = selectable("subsets", mmlu.table, "os", { pageLength: 10 });
  const combined = table("fisher", {
    columns: ["Model", "Kept", "Fisher's p", "Without", "With", "Table 2"].map((title, i) => ({ title, className: i ? "dt-right" : "" })),
  }, bare);
  byId("source").textContent = mmlu.source;
  byId("only").append(...mmlu.words.map((word) => new Option(word)));
  byId("only").addEventListener("change", () => {
    const word = byId("only").value;
    list.column(1).search(word && `(^|; )${word}(;|$)`, true, false).draw();
  });
  const at = (rows) => rows.indexes().toArray().map((i) => mmlu.subsets[i]);

  function show() {
    const subsets = at(list.rows({ search: "applied" }));
    const chosen = at(list.rows({ selected: true }));
    const kept = mmlu.curves.map(({ name, rule }) => subsets.filter((s) => s.p[name] != null && !s.out[rule]));
    const logs = (some, name) => some.map((s) => s.p[name]).filter((p) => p != null);
    fillTable(combined, mmlu.curves.map(({ name, printed }, i) => [
      name, kept[i].length, fisherText(logs(kept[i], name)),
      ...(chosen.length ? [
        fisherText(logs(kept[i].filter((s) => !chosen.includes(s)), name)),
        fisherText(logs([...new Set([...kept[i], ...chosen])], name)),
      ] : ["—", "—"]), printed,
    ]));
    const points = mmlu.curves.flatMap(({ name }, i) => [...new Set([...kept[i], ...chosen])]
      .filter((s) => s.p[name] != null)
      .map((s) => ({ model: name, p: 10 ** s.p[name], kept: kept[i].includes(s), chosen: chosen.includes(s), subset: s.title })));
    drawEcdf(points, mmlu.band / Math.sqrt(Math.max(1, Math.min(...kept.map((k) => k.length).filter(Boolean)))));
  }

  function drawEcdf(points, wide) {
    const share = { field: "share", type: "quantitative", scale: { domain: [0, 1] }, axis: { format: "%" }, title: "subsets" };
    const x = { field: "p", type: "quantitative", scale: { domain: [0, 1] }, title: "p-value" };
    const color = { field: "model", title: null, scale: { domain: mmlu.curves.map((c) => c.name), range: mmlu.curves.map((c) => c.colour) }, legend: { orient: "bottom", columns: 3 } };
    const cumulative = [{ sort: [{ field: "p" }], window: [{ op: "cume_dist", as: "share" }], groupby: ["model"] }];
    const keptOnly = [{ filter: "datum.kept" }, ...cumulative];
    draw("ecdf", {
      data: { values: points },
      layer: [
        { data: { sequence: { start: 0, stop: 1.01, step: 0.02, as: "p" } },
          transform: [{ calculate: `max(0, datum.p - ${wide})`, as: "low" }, { calculate: `min(1, datum.p + ${wide})`, as: "high" }],
          mark: { type: "area", color: "#888", opacity: 0.2 }, encoding: { x, y: { ...share, field: "low" }, y2: { field: "high" } } },
        { data: { values: [{ p: 0, share: 0 }, { p: 1, share: 1 }] }, mark: { type: "line", strokeDash: [5, 4], color: "#888" }, encoding: { x, y: share } },
        { transform: keptOnly, mark: { type: "line", interpolate: "step-after" }, encoding: { x, y: share, color } },
        { transform: [...cumulative, { filter: "datum.chosen" }], mark: { type: "point", filled: true, size: 70, tooltip: true, stroke: dark ? "white" : "black" }, encoding: { x, y: share, color, detail: { field: "subset" } } },
      ],
    });
  }

  function showChosen() {
    const chosen = at(list.rows({ selected: true }));
    const why = ({ title, words, out }) =>
      `${title}: ${words.join("; ")}. ${Object.entries(out).map(([rule, why]) => (why ? `Excluded (${rule}): ${why}. ` : "")).join("")}`;
    byId("picked").textContent = chosen.map(why).join(" ");
    if (chosen.length === 1) showExamples(chosen[0].name, chosen[0].title);
    show();
  }
  list.on("search", show);
  list.on("select deselect", showChosen);
  show();
}

// --- what the run has scored -----------------------------------------------------------------------

function showResults({ results, outcomes, sets }, showExamples) {
  const list = selectable("results", results, "single", { pageLength: 10 });
  const columns = [{ title: "What is found" }, ...["p", "Holm"].map((title) => ({ title, render: { _: "text", sort: "value", type: "value" } }))];
  const diagnostics = table("diagnostics", { columns }, bare);
  const filter = () => list.column(5).search(byId("usual").checked ? "in advance" : "").draw();
  byId("usual").addEventListener("change", filter);

  list.on("select", (event, dt, kind, [index]) => {
    const outcome = outcomes[index];
    const { diagnoses, ...examples } = sets[outcome.set];
    const { reasons, rows } = diagnoses[outcome.shards];
    byId("reading").textContent = outcome.reading;
    byId("reading").style.borderColor = outcome.colour;
    byId("reasons").textContent = reasons;
    fillTable(diagnostics, rows);
    const [model, name] = results.rows[index];
    const search = showExamples(examples, `${name} under ${model}`, outcome);
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
  filter();
  list.row({ search: "applied" }).select();
}

// --- the examples ----------------------------------------------------------------------------------

function exampleTable() {
  const columns = ["Example", "Part", "Evidence", "Text"].map((title, i) => ({ title, width: i < 3 ? "4rem" : undefined }));
  const list = table("examples", { columns }, { pageLength: 10 });
  return ({ texts, starts }, whose, outcome) => {
    const part = (i) => starts[outcome?.shards ?? 0].findLastIndex((start) => start <= i) + 1;
    byId("whose").textContent = `${whose}: ${texts.length} examples${outcome ? `; parts are the shards, evidence is the ${outcome.unit} of each` : ""}.`;
    list.search("").column(1).search("");
    fillTable(list, texts.map((text, i) => [i + 1, part(i), outcome ? outcome.by_shard[part(i) - 1] : "—", text]));
    return (shard) => list.column(1).search(`^${shard}$`, true, false).draw();
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
  showMmlu(data.mmlu, (name, title) => data.at_hand[name] && examples(data.at_hand[name], title));
  byId("scored").hidden = !data.outcomes.length;
  if (data.outcomes.length) showResults(data, examples);
  window.fisher = fisher; // for tests
  document.body.dataset.state = "ready";
}

start().catch((error) => {
  byId("problem").hidden = false;
  byId("problem").textContent = `This page could not be read (${error}). A current Firefox, Chrome, Edge or Safari can.`;
  document.body.dataset.state = "failed";
});
