// What is selected, and the start of the page. `charts.js` and `sections.js` stand before this file.
const CONTROLS = ["model", "set", "test", "shards", "b"];

async function unpack(text) {
  const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).json();
}

// --- what is selected ------------------------------------------------------------------------------

const unique = (values) => [...new Set(values)];

function wantedByAddress() {
  return Object.fromEntries(new URLSearchParams(location.hash.slice(1)));
}

function addressOf({ result, set, outcome }) {
  const parts = { model: result.model, group: set.group, set: set.name };
  if (outcome) Object.assign(parts, { test: outcome.test, shards: outcome.shards });
  if (outcome?.b) parts.b = outcome.b;
  return `#${new URLSearchParams(parts)}`;
}

/** The selection that exists and is closest to what is wanted. */
function settle(wanted) {
  const pick = (list, ...tests) => tests.map((test) => list.find(test)).find(Boolean) ?? list[0];
  const model = pick(unique(data.results.map((r) => r.model)), (name) => name === wanted.model);
  const results = data.results.filter((r) => r.model === model);
  const named = (r) => data.sets[r.set].name === wanted.set;
  const grouped = (r) => named(r) && data.sets[r.set].group === wanted.group;
  const result = pick(results, grouped, named);
  const { test } = pick(result.outcomes, (o) => o.test === wanted.test, (o) => o.test === data.default_test);
  const outcomes = result.outcomes.filter((o) => o.test === test);
  const { shards } = pick(outcomes, (o) => String(o.shards) === wanted.shards, (o) => o.usual);
  const outcome = pick(outcomes.filter((o) => o.shards === shards), (o) => o.b && o.b === wanted.b, (o) => o.usual);
  return { result, set: data.sets[result.set], outcome };
}

function fill(id, options, selected) {
  const groups = unique(options.map(([, , group]) => group));
  const nodes = groups.flatMap((group) => {
    const inside = options.filter((option) => option[2] === group);
    const list = inside.map(([value, text]) => {
      const option = element("option", { value }, text);
      option.selected = value === selected;
      return option;
    });
    if (!group) return list;
    const box = element("optgroup", { label: group });
    box.append(...list);
    return [box];
  });
  byId(id).replaceChildren(...nodes);
  byId(id).disabled = options.length < 2;
}

function fillControls() {
  const { result, outcome } = shown;
  const { outcomes } = result;
  const models = unique(data.results.map((r) => r.model));
  const sets = data.results.filter((r) => r.model === result.model).map((r) => r.set);
  const ofTest = outcomes.filter((o) => o.test === outcome.test);
  const ofShards = ofTest.filter((o) => o.shards === outcome.shards);
  const dot = (list) => (list.some((o) => o.usual) ? " •" : "");
  const tests = Object.keys(data.tests).filter((test) => outcomes.some((o) => o.test === test));
  fill("model", models.map((name) => [name, name]), result.model);
  fill("set", sets.map((i) => [String(i), data.sets[i].name, data.sets[i].group]), String(result.set));
  fill("test", tests.map((test) => [test, data.tests[test].label]), outcome.test);
  const counts = unique(ofTest.map((o) => o.shards)).sort((one, other) => one - other);
  const usualShards = (r) => dot(ofTest.filter((o) => o.shards === r));
  fill("shards", counts.map((r) => [String(r), r + usualShards(r)]), String(outcome.shards));
  fill("b", ofShards.map((o) => [o.b ?? "", o.b ? o.b + dot([o]) : "–"]), outcome.b ?? "");
}

function wantedByControls(changed) {
  const value = Object.fromEntries(CONTROLS.map((id) => [id, byId(id).value]));
  const { name, group } = data.sets[Number(value.set)];
  // What was set in advance for one test is not for another.
  const own = changed === "test" ? { shards: "", b: "" } : {};
  return { ...value, set: name, group, ...own };
}

function show(wanted) {
  shown = settle(wanted);
  history.replaceState(null, "", addressOf(shown));
  document.documentElement.style.setProperty("--test", data.tests[shown.outcome.test].colour);
  fillControls();
  showCard();
  drawCharts();
  showNumbers();
  showTests();
  showDiagnosis();
  showQuestions();
}

// --- start -----------------------------------------------------------------------------------------

async function start() {
  data = await unpack(byId("data").textContent);
  byId("title").textContent = data.title;
  byId("left-out").hidden = data.left_out.length === 0;
  byId("left-out").firstElementChild.textContent = `${data.left_out.length} stores left out`;
  byId("left-out").lastElementChild.append(...data.left_out.map((line) => element("li", {}, line)));
  document.querySelector("main").hidden = false;
  show(wantedByAddress());
  for (const id of CONTROLS) byId(id).addEventListener("change", () => show(wantedByControls(id)));
  byId("controls").addEventListener("submit", (event) => event.preventDefault());
  byId("search").addEventListener("input", showQuestions);
  window.addEventListener("hashchange", () => show(wantedByAddress()));
  let width = window.innerWidth;
  window.addEventListener("resize", () => {
    if (window.innerWidth !== width) drawCharts();
    width = window.innerWidth;
  });
  document.body.dataset.state = "ready";
}

start().catch((error) => {
  byId("problem").hidden = false;
  byId("problem").textContent = `This page could not be read (${error}). A current Firefox, Chrome, Edge or Safari (16.4 or later) can.`;
  document.body.dataset.state = "failed";
});
