// What is selected, and the start of the page. The other scripts stand before this file.
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

/** The selection that exists and is closest to what is wanted: a set, or one of the two lists. */
function settle(wanted) {
  const pick = (list, ...tests) => tests.map((test) => list.find(test)).find(Boolean) ?? list[0];
  if (!wanted.set && !wanted.model) {
    const view = wanted.view === "scored" && data.results.length ? "scored" : "mmlu";
    return { view };
  }
  const ofModel = (r) => r.model === wanted.model;
  const named = (r) => data.sets[r.set].name === wanted.set;
  const grouped = (r) => named(r) && data.sets[r.set].group === wanted.group;
  const both = (r) => grouped(r) && ofModel(r);
  const result = pick(data.results, both, (r) => named(r) && ofModel(r), grouped, named, ofModel);
  const known = [both, named].some((test) => data.results.some(test));
  const subset = data.mmlu.subsets.find((s) => s.name === wanted.set);
  if (!known && subset) return { view: "set", subset };
  if (!result) return { view: "mmlu" };
  const { test } = pick(result.outcomes, (o) => o.test === wanted.test, (o) => o.test === data.default_test);
  const outcomes = result.outcomes.filter((o) => o.test === test);
  const { shards } = pick(outcomes, (o) => String(o.shards) === wanted.shards, (o) => o.usual);
  const outcome = pick(outcomes.filter((o) => o.shards === shards), (o) => o.b && o.b === wanted.b, (o) => o.usual);
  const set = data.sets[result.set];
  return { view: "set", subset: subsetOf(set), result, set, outcome };
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
  const results = data.results.filter((r) => r.model === value.model);
  const there = results.find((r) => r.set === Number(value.set)) ?? results[0];
  const { name: reached, group: within } = there ? data.sets[there.set] : { name, group };
  return { ...value, set: reached, group: within, ...own };
}

function show(wanted) {
  shown = settle(wanted);
  for (const view of ["mmlu", "scored", "set"]) byId(`${view}-view`).hidden = shown.view !== view;
  for (const tab of document.querySelectorAll("#views a")) {
    const here = tab.hash === (shown.view === "scored" ? "#view=scored" : "#view=mmlu");
    if (here && shown.view !== "set") tab.setAttribute("aria-current", "page");
    else tab.removeAttribute("aria-current");
  }
  if (shown.view === "mmlu") {
    const { find, only, sort, down } = wanted;
    list = Object.fromEntries(Object.entries({ find, only, sort, down }).filter(([, value]) => value));
    showList();
  }
  if (shown.view === "scored") showScored();
  if (shown.view === "set") showSet();
}

function showSet() {
  const { result, outcome } = shown;
  showSubset();
  byId("stores").hidden = !result;
  if (result) {
    history.replaceState(null, "", addressOf(shown));
    document.documentElement.style.setProperty("--test", data.tests[outcome.test].colour);
    fillControls();
    showCard();
    drawCharts();
    showNumbers();
    showTests();
    showDiagnosis();
  }
  showQuestions();
}

/** Show the list with other choices, and let the address lead back to them. */
function go(choices) {
  const parts = Object.entries({ view: "mmlu", ...choices }).filter(([, value]) => value);
  history.replaceState(null, "", `#${new URLSearchParams(parts)}`);
  show(Object.fromEntries(parts));
}

/** Charts are as wide as the window was when they were drawn. */
function drawAgain() {
  if (shown.view === "mmlu") showList();
  if (shown.subset && shown.view === "set") showSubset();
  if (shown.outcome) drawCharts();
}

// --- start -----------------------------------------------------------------------------------------

async function start() {
  data = await unpack(byId("data").textContent);
  byId("title").textContent = data.title;
  byId("left-out").hidden = data.left_out.length === 0;
  byId("left-out").firstElementChild.textContent = `${data.left_out.length} stores left out`;
  byId("left-out").lastElementChild.append(...data.left_out.map((line) => element("li", {}, line)));
  document.querySelector("main").hidden = false;
  byId("views").hidden = data.results.length === 0;
  show(wantedByAddress());
  for (const id of CONTROLS) byId(id).addEventListener("change", () => show(wantedByControls(id)));
  byId("controls").addEventListener("submit", (event) => event.preventDefault());
  byId("search").addEventListener("input", showQuestions);
  byId("find").addEventListener("input", () => go({ ...list, find: byId("find").value }));
  for (const id of ["only", "sort"]) byId(id).addEventListener("change", () => go({ ...list, [id]: byId(id).value }));
  byId("filters").addEventListener("submit", (event) => event.preventDefault());
  // A link has been followed: the page of a set begins at its top.
  window.addEventListener("hashchange", () => {
    byId("search").value = "";
    show(wantedByAddress());
    if (shown.view === "set" && !shown.result) byId("subset-title").focus();
    window.scrollTo(0, 0);
  });
  let width = window.innerWidth;
  window.addEventListener("resize", () => {
    if (window.innerWidth !== width) drawAgain();
    width = window.innerWidth;
  });
  document.body.dataset.state = "ready";
}

start().catch((error) => {
  byId("problem").hidden = false;
  byId("problem").textContent = `This page could not be read (${error}). A current Firefox, Chrome, Edge or Safari (16.4 or later) can.`;
  document.body.dataset.state = "failed";
});
