// MMLU: the list of its subsets, what they come to together, and what is known of one of them.
const PUBLISHED = "published"; // the rule of exclusion of the paper

// --- statistics ------------------------------------------------------------------------------------

/** Decimal logarithm of Fisher's p: a chi-squared tail with 2n degrees of freedom is a finite sum. */
function fisher(logs) {
  const half = -Math.LN10 * logs.reduce((sum, log10p) => sum + log10p, 0);
  let term = 0; // natural logarithm of half^i / i!
  const terms = logs.map((_, i) => (i ? (term += Math.log(half / i)) : term));
  const most = Math.max(...terms);
  const sum = terms.reduce((total, one) => total + Math.exp(one - most), 0);
  return Math.min(0, (most + Math.log(sum) - half) / Math.LN10);
}

const SUPERSCRIPTS = { "-": "⁻", ...Object.fromEntries([..."⁰¹²³⁴⁵⁶⁷⁸⁹"].map((c, i) => [i, c])) };

/** A p-value as the tables write it; only its logarithm still tells where floats end. */
function formatP(log10p) {
  if (log10p === undefined || log10p === null) return "—";
  const moved = log10p < -300 ? Math.trunc(log10p) : 0;
  const p = 10 ** (log10p - moved);
  if (!moved && p >= 0.001) return p.toFixed(3);
  const [mantissa, power] = p.toExponential(1).split("e");
  const raised = [...String(Number(power) + moved)].map((c) => SUPERSCRIPTS[c]).join("");
  return `${mantissa}\u00a0×\u00a010${raised}`;
}

// --- which subsets are listed, and in which order --------------------------------------------------

const columns = () => data.mmlu.columns;
const published = () => columns().filter((column) => column.rule === PUBLISHED);
const audited = () => columns().filter((column) => !column.control);
const keptBy = (rule) => (subset) => !subset.excluded[rule] && (rule !== PUBLISHED || subset.listed);
const values = (subsets, column) =>
  subsets.filter(keptBy(column.rule)).map((s) => s.p[column.id]).filter((p) => p !== undefined);
const isSmall = (log10p) => 10 ** log10p < data.mmlu.level * (1 - 1e-9); // 0.05 as printed is not

const beside = (way) => (subset) =>
  subset.cut[way]?.rows.find((r) => `${r.model}, ${data.tests[r.test].label.toLowerCase()}` === data.mmlu.beside)?.log10_p;

/** Columns of the list: heading, what it sorts by, what it shows. */
function listColumns() {
  const p = (of) => ({ sort: of, show: (s) => formatP(of(s)), p: of });
  return [
    { id: "name", heading: "Subset", sort: (s) => s.title },
    { id: "records", heading: "Records", sort: (s) => s.records, show: (s) => s.records.toLocaleString("en") },
    ...published().map((c) => ({ id: c.id, heading: c.label, control: c.control, ...p((s) => s.p[c.id]) })),
    { id: "record", heading: "here, by record", ...p(beside("record")) },
    { id: "line", heading: "here, by line", ...p(beside("line")) },
    {
      id: "lines", heading: "Lines per record", sort: (s) => s.facts.lines_per_record,
      show: (s) => s.facts.lines_per_record?.toFixed(1) ?? "—",
    },
  ];
}

const FILTERS = {
  all: ["All subsets", () => true],
  kept: ["Kept by the paper's rule", keptBy(PUBLISHED)],
  excluded: ["Excluded by the paper's rule", (s) => s.excluded[PUBLISHED]],
  small: ["Kept, and small under an audited model", (s) =>
    keptBy(PUBLISHED)(s) && published().some((c) => !c.control && isSmall(s.p[c.id]))],
  lines: ["Records on several lines", (s) => s.facts.spanning > 0],
  cut: ["Small here by line, not by record", (s) => isSmall(beside("line")(s)) && !isSmall(beside("record")(s))],
  scored: ["Scored by this run", (s) => data.results.some((r) => subsetOf(data.sets[r.set]) === s)],
};

/** The subset that a scored set was made of, whichever way it was cut. */
function subsetOf(set) {
  const name = set.name.replace(/^mmlu\//, "").replace(/-by-line$/, "");
  return set.group === "Canary sets" ? undefined : data.mmlu.subsets.find((s) => s.name === name);
}

function selection({ find = "", only = "all", sort = "name", down = "" }) {
  const wanted = find.trim().toLowerCase();
  const [, keep] = FILTERS[only] ?? FILTERS.all;
  const key = (listColumns().find((column) => column.id === sort) ?? listColumns()[0]).sort;
  const found = data.mmlu.subsets.filter(
    (s) => keep(s) && (s.title.toLowerCase().includes(wanted) || s.name.includes(wanted)),
  );
  const order = (one, other) => {
    const [a, b] = [key(one), key(other)];
    if (a === b) return 0;
    if (a === undefined || b === undefined) return a === undefined ? 1 : -1; // unknown ones last
    return (a < b ? -1 : 1) * (down ? -1 : 1);
  };
  return found.sort(order);
}

// --- the list --------------------------------------------------------------------------------------

const subsetAddress = (subset) => `#${new URLSearchParams({ group: "MMLU", set: subset.name })}`;

function mark(subset) {
  if (!subset.listed) return element("span", { class: "mark-out" }, "not in Table 4");
  return subset.excluded[PUBLISHED] ? element("span", { class: "mark-out" }, "excluded") : "";
}

function showList() {
  const subsets = selection(list);
  const all = listColumns();
  const sorted = all.find((column) => column.id === list.sort) ?? all[0];
  // Where there is room for one column beside the names, it is the one that sorts, or the first p.
  const narrow = sorted.id === "name" ? all[2].id : sorted.id;
  const printed = published().map((column) => column.id);
  const side = ({ id }) => `number${id === narrow ? " chosen" : ""}${printed.includes(id) ? " printed" : ""}`;
  byId("find").value = list.find ?? "";
  const options = Object.entries(FILTERS).filter(([id]) => id !== "scored" || data.results.some((r) => subsetOf(data.sets[r.set])));
  fill("only", options.map(([id, [text]]) => [id, text]), list.only ?? "all");
  fill("sort", all.map((column) => [column.id, column.heading]), sorted.id);
  const head = element("tr");
  for (const column of all) {
    const direction = list.down ? "descending" : "ascending";
    const cell = element("th", column === sorted ? { "aria-sort": direction } : {});
    cell.className = column.id === "name" ? "" : side(column);
    const button = element("button", { type: "button" }, column.heading);
    button.addEventListener("click", () => {
      const down = column === sorted && !list.down ? "1" : "";
      go({ ...list, sort: column.id, down });
      byId("subsets").querySelector("th[aria-sort] button").focus();
    });
    cell.append(button);
    head.append(cell);
  }
  byId("subsets").tHead.replaceChildren(head);
  byId("subsets").tBodies[0].replaceChildren(...subsets.map((subset) => {
    const line = element("tr", subset.excluded[PUBLISHED] ? { class: "out" } : {});
    const name = element("th", { scope: "row" });
    name.append(element("a", { href: subsetAddress(subset) }, subset.title), " ", mark(subset));
    line.append(name, ...all.slice(1).map((column) => {
      const cell = element("td", {}, column.show(subset));
      cell.className = `${side(column)}${column.p && isSmall(column.p(subset)) ? " small" : ""}`;
      return cell;
    }));
    return line;
  }));
  const count = subsets.filter(keptBy(PUBLISHED)).length;
  const out = subsets.filter((s) => s.excluded[PUBLISHED]).length;
  const combined = published().filter((c) => !c.control)
    .map((c) => `${c.label} ${count ? formatP(fisher(values(subsets, c))) : "—"}`);
  byId("count").textContent =
    `${subsets.length} of ${data.mmlu.subsets.length} subsets shown, ${out} of them excluded by the paper's rule, ${count} kept. ` +
    `Fisher's p over the kept: ${combined.join(", ")}.`;
  byId("beside").textContent = data.mmlu.beside;
  showAggregate(byId("list-ecdf"), byId("fisher"), subsets, null);
}

function curves(subsets, marked) {
  return audited().map((column) => ({
    label: column.label, colour: column.colour,
    values: values(subsets, column).map((p) => 10 ** p).sort((one, other) => one - other),
    marked: marked ? marked.p[column.id] : undefined,
  }));
}

/** ECDFs of the kept p-values, and Fisher's p of them; of one subset also without and with it. */
function showAggregate(chart, table, subsets, one) {
  drawEcdf(chart, curves(subsets, one), data.mmlu.band);
  const head = one ? ["Model", "Without it", "With it"] : ["Model", "Kept", "Fisher’s p", "Table 2"];
  const rows = audited().map((column) => {
    const name = element("span", { class: "named" });
    const swatch = element("span", { class: "swatch" });
    swatch.style.background = column.colour;
    name.append(swatch, column.label);
    if (one) {
      const without = values(data.mmlu.subsets.filter((s) => s !== one), column);
      const own = one.p[column.id];
      return [name, formatP(fisher(without)), own === undefined ? "—" : formatP(fisher([...without, own]))];
    }
    const kept = values(subsets, column);
    return [name, String(kept.length), kept.length ? formatP(fisher(kept)) : "—", column.printed ?? "—"];
  });
  fillTable(table, head, rows);
}

/** Fill a table whose last columns hold numbers: all but the first, unless told. */
function fillTable(table, head, rows, numbers = head.length - 1) {
  const line = element("tr");
  const side = (i) => (i >= head.length - numbers ? { class: "number" } : {});
  line.append(...head.map((text, i) => element("th", { scope: "col", ...side(i) }, text)));
  table.tHead.replaceChildren(line);
  table.tBodies[0].replaceChildren(...rows.map((cells) => row(cells, numbers)));
}

// --- one subset ------------------------------------------------------------------------------------

function showSubset() {
  const { subset } = shown;
  for (const id of ["facts", "scored-here"]) byId(id).hidden = !subset;
  if (!subset) return;
  const order = selection(list);
  const place = order.indexOf(subset);
  byId("back").href = `#${new URLSearchParams({ view: "mmlu", ...list })}`;
  for (const [id, other] of [["previous", order[place - 1]], ["next", order[place + 1]]]) {
    byId(id).hidden = place < 0 || !other;
    if (other) {
      byId(id).href = subsetAddress(other);
      byId(id).textContent = id === "next" ? `${other.title} →` : `← ${other.title}`;
    }
  }
  const reason = subset.excluded[PUBLISHED];
  byId("subset-title").textContent = subset.title;
  byId("status").textContent = !subset.listed ? "Not in Table 4" : reason ? "Excluded" : "Kept";
  byId("status-why").textContent = !subset.listed
    ? "The paper prints no p-value of this subset."
    : reason
      ? `${reason}. A control cannot know the subset, so something other than memory makes its published order likely, and the subset says nothing about the other models.`
      : `Neither control has p < ${data.mmlu.level}, so the paper's procedure combines this subset with the others.`;
  byId("printed").hidden = !subset.listed;
  if (subset.listed) {
    fillTable(byId("printed-table"), ["Model", "p"], published().map((column) => {
      const name = element("span", {}, column.label);
      if (column.control) name.append(" ", element("span", { class: "mark-out" }, "control"));
      return [name, formatP(subset.p[column.id])];
    }));
    showAggregate(byId("subset-ecdf"), byId("subset-fisher"), data.mmlu.subsets, subset);
  }
  showMeasured(subset);
  const others = data.results.filter((r) => r !== shown.result && subsetOf(data.sets[r.set]) === subset);
  byId("elsewhere").hidden = others.length === 0;
  byId("elsewhere").replaceChildren("Scored by this run: ", ...others.flatMap((result, i) => {
    const set = data.sets[result.set];
    return [i ? ", " : "", link({ result, set }, `${set.name} (${set.group}) under ${result.model}`)];
  }));
  byId("no-examples").hidden = Boolean(data.at_hand[subset.name] || shown.result);
}

const WAYS = { record: "by record", line: "by line" };

function showMeasured(subset) {
  const ways = Object.keys(subset.cut);
  byId("measured").hidden = ways.length === 0;
  if (!ways.length) return;
  const rows = ways.flatMap((way) => subset.cut[way].rows.map((r) => [
    `${r.model}, ${data.tests[r.test].label.toLowerCase()}`, WAYS[way],
    r.shards ? String(r.shards) : "—", formatP(r.log10_p),
  ]));
  fillTable(byId("measured-table"), ["Model and test", "Examples", "Shards", "p"], rows, 2);
  const own = Object.entries(subset.excluded).filter(([rule]) => rule !== PUBLISHED)
    .map(([rule, why]) => `${data.tests[rule].label}: ${why}`);
  byId("measured-source").textContent = `${data.mmlu.source}${own.length ? ` Excluded by the controls here: ${own.join("; ")}.` : ""}`;
  fillTable(byId("free-table"), ["", ...ways.map((way) => WAYS[way])], [
    ["Examples", ...ways.map((way) => subset.cut[way].examples.toLocaleString("en"))],
    ["Diagnostics of the order", ...ways.map((way) => subset.cut[way].verdict)],
    ["p of a compressor", ...ways.map((way) => formatP(subset.cut[way].compressor))],
  ]);
  const { lines_per_record: lines, spanning, shared_passages: passages } = subset.facts;
  const share = (value) => `${Math.round(100 * value)}%`;
  byId("free-facts").textContent =
    `${lines.toFixed(1)} lines per record; ${share(spanning)} of the records span several lines, ${share(passages)} share their longest line with another record.`;
}
