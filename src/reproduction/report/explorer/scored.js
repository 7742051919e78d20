// What the run has scored, under every test, and the examples of a set in their order.

function showResults({ results, outcomes, sets }, showExamples) {
  const list = selectable("results", results, { pageLength: 10, language: { search: "Search the scored sets:" } });

  printWhole(list);
  list.on("select", (event, dt, kind, [index]) => {
    const outcome = outcomes[index];
    byId("reading").textContent = outcome.reading;
    byId("reading").style.borderColor = visible(outcome.colour);
    byId("reasons").textContent = outcome.reasons;
    const [model, name] = results.rows[index];
    const search = showExamples(sets[outcome.set], `${name} under ${model}`, outcome);
    drawOutcome(outcome, search);
  });

  async function drawOutcome(outcome, search) {
    const values = outcome.by_shard.map((value, i) => ({ shard: i + 1, value }));
    const y = { field: "value", type: "quantitative", title: outcome.unit };
    const { view } = await draw("shards", { data: { values }, layer: [
      { mark: { type: "bar", color: visible(outcome.colour), tooltip: true, cursor: "pointer" }, encoding: { x: { field: "shard", type: "ordinal", axis: { labelOverlap: true, labelAngle: 0 } }, y } },
      { mark: { type: "rule", strokeDash: [5, 4], color: visible("#57606a") }, encoding: { y: { ...y, aggregate: "mean" } } },
    ] });
    view.addEventListener("click", (event, item) => item?.datum?.shard && search(item.datum.shard));
  }
  list.row({ search: "applied" }).select();
}

// --- the examples ----------------------------------------------------------------------------------

function exampleTable() {
  const columns = ["Example", "Shard", "Evidence", "Text"].map((title, i) => ({ title, width: i < 3 ? "4rem" : undefined }));
  const list = table("examples", { columns }, { pageLength: 10, language: { search: "Search the examples:" } });
  return (texts, whose, outcome) => {
    const shard = (i) => outcome && outcome.starts.findLastIndex((start) => start <= i) + 1;
    byId("whose").textContent = `${whose}: ${texts.length} examples${outcome ? `; evidence is the ${outcome.unit} of a shard` : ""}.`;
    list.search("").column(1).search("");
    fillTable(list, texts.map((text, i) => [i + 1, shard(i) ?? "—", outcome?.by_shard[shard(i) - 1] ?? "—", text]));
    return (number) => list.column(1).search(`^${number}$`, true, false).draw();
  };
}
