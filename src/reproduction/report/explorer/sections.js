// One function for each section of the page; all of them show what is selected.
// Texts are other people's: they are only ever set as text, never parsed as markup.
const MOST_FOUND = 200;
const UNSCORED = 25; // examples of a part, where nothing was scored
const byId = (id) => document.getElementById(id);
let data;
let shown; // what is selected: { view, subset, result, set, outcome }
let list = {}; // how the list of subsets is filtered and sorted: { find, only, sort, down }

function element(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children.map(String));
  return node;
}

function row(cells, numbers) {
  const line = element("tr");
  cells.forEach((cell, i) => {
    const box = element("td", i >= cells.length - numbers ? { class: "number" } : {});
    box.append(cell);
    line.append(box);
  });
  return line;
}

const peers = () => data.results.filter(
  (r) => r.model === shown.result.model && data.sets[r.set].group === shown.set.group,
);

function showCard() {
  const { result, set, outcome } = shown;
  const others = peers().length;
  byId("about").textContent = `${set.name}, ${set.examples.length.toLocaleString("en")} examples. ${result.about}`;
  byId("verdict").textContent = `${outcome.verdict}.`;
  byId("p").textContent = `p = ${outcome.p}`;
  byId("reading").textContent = outcome.reading;
  byId("choice").textContent =
    (outcome.usual
      ? "The number of shards and b were set in advance. Whoever picks a test or a set after looking at the numbers needs the corrected ones: "
      : "This is not what was set in advance, and a p-value picked after looking is worth nothing by itself. Corrected: ") +
    `p = ${result.joint} over every exact choice for this set` +
    (others > 1 ? `, p = ${result.holm} over all ${others} sets of its group as well.` : ".");
}

const NULLS = {
  permutation: (o) => `Grey: the ${o.permutations} shuffles of the whole set.`,
  sharded_t: (o) => `Grey: Student's t with ${o.shards - 1} degrees of freedom, which the test assumes.`,
};
const EXACT = () => "Grey: the sum over shards when an order drawn at random plays the published one in each.";

function shardName(shard) {
  const { set, outcome } = shown;
  const starts = set.starts[outcome.shards];
  return `Shard ${shard + 1}, examples ${starts[shard] + 1}–${starts[shard + 1] ?? set.examples.length}`;
}

function drawCharts() {
  const { outcome } = shown;
  const z = outcome.unit === "z";
  drawNull(byId("null-chart"), outcome, outcome.test === "sharded_t" ? "t" : "z");
  byId("null-caption").textContent = `${(NULLS[outcome.test] ?? EXACT)(outcome)} The further right the line, the smaller p.`;
  drawShards(byId("shards-chart"), outcome, shardName, openShard);
  byId("shards-caption").textContent =
    (z
      ? "How far the published order of a shard lies above the mean of all its orders, in standard deviations."
      : "The log-probability of the published order of a shard less the mean over its shuffles, in nats.") +
    " Evidence that a model has read a set is spread over many shards; a single tall bar is rather a shard with something odd in it. A click on a bar opens its examples.";
}

function numbers(id, headings, rows) {
  const summary = byId(id).firstElementChild;
  const table = element("table");
  const head = element("tr");
  head.append(...headings.map((text, i) => element("th", i ? { class: "number" } : {}, text)));
  table.append(head, ...rows.map((cells) => row(cells, headings.length - 1)));
  byId(id).replaceChildren(summary, table);
}

function showNumbers() {
  const { low, high, counts } = shown.outcome.null;
  const bin = (high - low) / counts.length;
  const edges = (i) => `${number(low + i * bin)} to ${number(low + (i + 1) * bin)}`;
  numbers("null-numbers", ["Between", "Orders"], counts.map((count, i) => [edges(i), String(count)]));
  numbers("shards-numbers", ["Shard", shown.outcome.unit], shown.outcome.by_shard.map((v, i) => [shardName(i), fixed(v)]));
}

function link(to, text) {
  return element("a", { href: addressOf(to) }, text);
}

function showTests() {
  const { result, set, outcome } = shown;
  byId("tests").tBodies[0].replaceChildren(
    ...Object.keys(data.tests).flatMap((test) =>
      result.outcomes.filter((o) => o.test === test).map((o) => {
        const name = element("span");
        const swatch = element("span", { class: "swatch" });
        swatch.style.background = data.tests[test].colour;
        name.append(swatch, link({ result, set, outcome: o }, data.tests[test].label), o.usual ? " •" : "");
        const line = row([name, String(o.shards), o.b ?? "–", o.p], 3);
        if (o === outcome) line.setAttribute("aria-current", "true");
        return line;
      }),
    ),
  );
  const all = peers();
  byId("overview").hidden = all.length < 2;
  byId("overview").firstElementChild.textContent = `All ${all.length} sets of the group “${set.group}” under ${result.model}, corrected`;
  byId("overview").querySelector("tbody").replaceChildren(
    ...all.map((r) => row([link({ result: r, set: data.sets[r.set] }, data.sets[r.set].name), r.joint, r.holm], 2)),
  );
}

function showDiagnosis() {
  const { verdict, reasons, rows } = shown.set.diagnoses[shown.outcome.shards];
  byId("diagnosis").textContent = verdict;
  byId("reasons").replaceChildren(...reasons.map((reason) => element("li", {}, reason)));
  byId("diagnostics").tBodies[0].replaceChildren(
    ...rows.map(([name, reading, p, holm]) => row([`${name.replaceAll("_", " ")}: ${reading}`, p, holm], 2)),
  );
}

/** Every scored set under every model, with the test that was set in advance. */
function showScored() {
  const rows = data.results.map((result) => {
    const set = data.sets[result.set];
    const usual = result.outcomes.find((o) => o.test === data.default_test && o.usual) ?? result.outcomes.find((o) => o.usual);
    const name = element("span");
    name.append(link({ result, set }, set.name), element("span", { class: "under" }, `${result.model} · ${set.group}`));
    return [name, usual?.p ?? "—", result.joint, result.holm];
  });
  fillTable(byId("scored-table"), ["Test set and model", "p", "All choices", "All sets"], rows);
}

// --- the examples ----------------------------------------------------------------------------------

function example(texts, index) {
  const item = element("li", { class: "example" });
  item.append(
    element("span", { class: "place" }, index + 1),
    element("span", { class: "text" }, texts[index]),
  );
  return item;
}

/** Texts, where each block of them starts, and what a block is called. */
function blocks() {
  const { set, subset, outcome } = shown;
  if (outcome) {
    const summary = (shard) => {
      const value = fixed(outcome.by_shard[shard]);
      return `${shardName(shard)}: ${outcome.unit === "z" ? `z = ${value}` : `${value} nats`}`;
    };
    return { texts: set.examples, starts: set.starts[outcome.shards], summary, what: "shards" };
  }
  const texts = data.at_hand[subset.name] ?? [];
  const starts = Array.from({ length: Math.ceil(texts.length / UNSCORED) }, (_, i) => i * UNSCORED);
  const summary = (i) => `Examples ${starts[i] + 1}–${starts[i + 1] ?? texts.length}`;
  return { texts, starts, summary, what: "parts" };
}

function showQuestions() {
  const { texts, starts, summary, what } = blocks();
  byId("examples").hidden = texts.length === 0;
  const wanted = byId("search").value.trim().toLowerCase();
  if (wanted) {
    const found = texts.flatMap((text, i) => (text.toLowerCase().includes(wanted) ? [i] : []));
    const cut = found.length > MOST_FOUND ? `, the first ${MOST_FOUND} below` : "";
    byId("found").textContent = `${found.length} of ${texts.length} examples${cut}`;
    const items = element("ol");
    items.append(...found.slice(0, MOST_FOUND).map((index) => example(texts, index)));
    byId("questions").replaceChildren(items);
    return;
  }
  byId("found").textContent = `${starts.length} ${what}; open one to read it.`;
  const parts = starts.map((start, part) => {
    const box = element("details");
    box.append(element("summary", {}, summary(part)));
    // Only what is opened is built: a set may hold thousands of texts.
    box.addEventListener("toggle", () => {
      if (box.children.length > 1) return;
      const items = element("ol");
      const stop = starts[part + 1] ?? texts.length;
      for (let i = start; i < stop; i += 1) items.append(example(texts, i));
      box.append(items);
    });
    return box;
  });
  if (parts.length) parts[0].open = true;
  byId("questions").replaceChildren(...parts);
}

function openShard(shard) {
  byId("search").value = "";
  showQuestions();
  const box = byId("questions").children[shard];
  box.open = true;
  box.firstElementChild.focus();
}
