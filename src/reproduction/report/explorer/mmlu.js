// MMLU: the table of its subsets, and the panel of one of them, which has an address: #mmlu/anatomy.
const ADDRESS = "#mmlu/";
const LEVEL = -Math.log10(0.05);

/** Shows MMLU, and returns what opens the subset that the page's address names. */
function showMmlu(mmlu, showExamples) {
  const choice = new Choice(mmlu.curves);
  const combined = showCombined(mmlu, choice);
  const panel = new SubsetPanel(mmlu, choice, showExamples);
  const list = showSubsets(mmlu, choice, panel);

  choice.changed = () => {
    combined();
    list.showTicks();
    panel.showFisher();
  };
  byId("reset").addEventListener("click", () => {
    choice.ticked.clear();
    choice.changed();
  });
  panel.opened = list.mark;
  byId("source").textContent = mmlu.source;
  drawEcdf("ecdf", mmlu, []);
  const openAddress = () => {
    if (!location.hash.startsWith(ADDRESS)) return;
    const name = decodeURIComponent(location.hash.slice(ADDRESS.length));
    if (mmlu.names.includes(name)) panel.open(name);
  };
  addEventListener("hashchange", openAddress);
  return openAddress;
}

// --- the table of subsets --------------------------------------------------------------------------

function showSubsets(mmlu, choice, panel) {
  const boxes = new Map();
  const links = new Map();

  function addBox(cell, name) {
    const box = document.createElement("input");
    box.type = "checkbox";
    box.setAttribute("aria-label", `combine ${mmlu.subsets[name].title} with the others`);
    choice.show(box, name);
    box.addEventListener("change", () => {
      choice.ticked.set(name, box.checked);
      choice.changed();
    });
    boxes.set(name, box);
    cell.append(box);
  }

  function addLink(cell, name) {
    const link = textElement("a", mmlu.subsets[name].title);
    link.href = `${ADDRESS}${name}`;
    links.set(name, link);
    cell.append(link);
  }

  function fillRow(row, index) {
    const name = mmlu.names[index];
    const first = row.cells[0];
    first.replaceChildren();
    addBox(first, name);
    addLink(first, name);
    row.addEventListener("click", (event) => {
      if (event.target.type === "checkbox") return;
      // In a notebook's frame a link would load the notebook's own page: its base is another one.
      event.preventDefault();
      panel.open(name);
    });
  }

  const language = { search: "Search the subsets:" };
  const list = table("subsets", mmlu.table, { pageLength: 10, createdRow: fillRow, language });
  printWhole(list);
  const shownNames = () => list.rows({ search: "applied", order: "applied" }).indexes().toArray().map((index) => mmlu.names[index]);

  byId("subsets").addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    const visibleLinks = [...document.querySelectorAll("#subsets tbody a")];
    const next = visibleLinks[visibleLinks.indexOf(event.target) + step];
    if (!step || !next) return;
    event.preventDefault();
    next.focus();
  });

  return {
    showTicks() {
      boxes.forEach((box, name) => choice.show(box, name));
    },
    /** Shows the page of the table on which an opened subset stands, and marks its row. */
    mark(name) {
      const place = shownNames().indexOf(name);
      if (place >= 0) list.page(Math.floor(place / list.page.len())).draw(false);
      links.forEach((link, each) => {
        const row = link.closest("tr");
        if (each === name) row.setAttribute("aria-current", "true");
        else row.removeAttribute("aria-current");
      });
      panel.returnTo = links.get(name);
    },
  };
}

// --- all kept subsets ------------------------------------------------------------------------------

/** Fills the table of Fisher's p-values, and returns what renews its last two columns. */
function showCombined(mmlu, choice) {
  const columns = [...mmlu.fisher.columns, { title: "Ticked" }, { title: "p as ticked" }];
  const ticked = (curve) => [choice.names(curve).length, formatP(choice.log10P(curve))];
  const rows = mmlu.fisher.rows.map((row, i) => [...row, ...ticked(mmlu.curves[i])]);
  const bare = { paging: false, searching: false, info: false, ordering: false };
  const list = table("fisher", { columns, rows }, bare);

  return () => {
    mmlu.curves.forEach((curve, i) => {
      const [count, p] = ticked(curve);
      list.cell(i, columns.length - 2).data(count);
      list.cell(i, columns.length - 1).data(p);
    });
  };
}

// One for each curve, which colour alone would not tell apart.
const DASHES = [[1, 0], [9, 3], [2, 2], [9, 3, 2, 3], [5, 2], [1, 3]];

/** Draws the ECDF of every curve, and on it the places of one subset. */
function drawEcdf(id, mmlu, places) {
  const share = { field: "share", type: "quantitative", scale: { domain: [0, 1] }, axis: { format: "%", tickCount: 5 }, title: "share of kept subsets" };
  const x = { field: "p", type: "quantitative", scale: { domain: [0, 1] }, axis: { tickCount: 5 }, title: "p-value" };
  const scale = { domain: mmlu.curves.map((curve) => curve.name), range: mmlu.curves.map((curve) => visible(curve.colour)) };
  const color = { field: "name", title: null, scale, legend: { orient: "bottom", columns: narrow ? 1 : 2, symbolType: "stroke", symbolSize: 600, symbolOpacity: 1 } };
  const strokeDash = { field: "name", title: null, scale: { domain: scale.domain, range: DASHES } };
  const steps = mmlu.curves.flatMap(({ name, points }) => points.map(([p, height]) => ({ name, p, share: height })));
  return draw(id, {
    layer: [
      { data: { values: mmlu.band }, mark: { type: "area", color: "#888", opacity: 0.2 }, encoding: { x, y: { ...share, field: "low" }, y2: { field: "high" } } },
      { data: { values: mmlu.band }, mark: { type: "line", strokeDash: [5, 4], color: "#888" }, encoding: { x, y: { ...share, field: "p" } } },
      { data: { values: steps }, mark: { type: "line", interpolate: "step-after", opacity: places.length ? 0.45 : 1 }, encoding: { x, y: share, color, strokeDash } },
      { data: { values: places }, mark: { type: "point", size: 110, opacity: 1, strokeWidth: 2 },
        encoding: { x, y: share, color, fill: { condition: { test: "datum.kept", field: "name", scale }, value: "transparent" } } },
    ],
  });
}

// --- the panel of one subset -----------------------------------------------------------------------

/** Draws the p-values of all models on one axis, evidence to the right, with the level. */
function drawPValues(id, rows) {
  const kinds = { published: "published", control: "published, a control", measured: "measured" };
  const values = rows.map((row) => ({ name: row.curve, kind: kinds[row.kind], evidence: -row.log10_p, text: row.text }));
  const strongest = Math.max(2.5, ...values.map((value) => value.evidence));
  const ticks = strongest < 4 ? [0, 1, 2, 3] : [0, 1, 2, 5, 10, 20, 38];
  const labels = ticks.map((tick) => [tick, tick < 4 ? String(10 ** -tick) : `10⁻${superscript(tick)}`]);
  const label = `${JSON.stringify(Object.fromEntries(labels))}[datum.value]`;
  const x = {
    field: "evidence", type: "quantitative", title: "p-value, smaller to the right",
    scale: { type: "symlog", constant: 2, domain: [0, 1.1 * strongest], nice: false },
    axis: { values: ticks, labelExpr: label, labelOverlap: true },
  };
  const y = { field: "name", type: "nominal", sort: null, title: null, axis: { labelExpr: "split(datum.label, ', ')", labelLimit: narrow ? 150 : 260, grid: true } };
  const range = ["#CC6677", "#000000", "#332288"].map(visible);
  const color = { field: "kind", title: null, scale: { domain: Object.values(kinds), range }, legend: { orient: "bottom", columns: narrow ? 1 : 3 } };
  // On the right half the text of a point stands left of it, where there is room.
  const written = (filter, align, dx) => ({ transform: [{ filter }], mark: { type: "text", align, dx } });
  return draw(id, {
    height: 32 * values.length,
    data: { values },
    layer: [
      { data: { values: [{ level: LEVEL }] }, mark: { type: "rule", strokeDash: [5, 4], color: "#888" }, encoding: { x: { ...x, field: "level" } } },
      { data: { values: [{ level: LEVEL }] }, mark: { type: "text", y: -6, align: "center" }, encoding: { x: { ...x, field: "level" }, text: { value: "0.05" } } },
      { mark: { type: "point", filled: true, size: 90, opacity: 1 }, encoding: { x, y, color } },
      { ...written(`datum.evidence <= ${strongest / 2}`, "left", 9), encoding: { x, y, text: { field: "text" } } },
      { ...written(`datum.evidence > ${strongest / 2}`, "right", -9), encoding: { x, y, text: { field: "text" } } },
    ],
  });
}

class SubsetPanel {
  constructor(mmlu, choice, showExamples) {
    this.mmlu = mmlu;
    this.choice = choice;
    this.showExamples = showExamples;
    this.name = null;
    byId("count").addEventListener("change", (event) => this.tick(event.target.checked));
    byId("previous").addEventListener("click", () => this.step(-1));
    byId("next").addEventListener("click", () => this.step(1));
    byId("close").addEventListener("click", () => this.close());
    byId("subset").addEventListener("keydown", (event) => {
      if (event.key === "Escape") this.close();
    });
    byId("to-examples").addEventListener("click", () => byId("whose").scrollIntoView());
  }

  open(name) {
    if (name === this.name) return;
    this.name = name;
    const subset = this.mmlu.subsets[name];
    byId("subset").hidden = false;
    byId("subset-title").textContent = subset.title;
    byId("why").textContent = subset.why;
    byId("lines").textContent = subset.lines;
    byId("audit").textContent = subset.audit;
    byId("missing").hidden = subset.p_values.some((row) => row.kind === "published");
    fillPlainTable("ways", subset.ways.columns.map((column) => column.title), subset.ways.rows);
    this.showExample(subset);
    this.showFisher();
    drawPValues("subset-p", subset.p_values);
    drawEcdf("subset-place", this.mmlu, this.places());
    this.opened(name);
    this.setAddress(`${ADDRESS}${name}`);
    byId("subset").scrollIntoView();
    byId("subset-title").focus({ preventScroll: true });
  }

  close() {
    byId("subset").hidden = true;
    this.name = null;
    this.setAddress("#mmlu");
    this.returnTo?.focus();
  }

  /** A frame in a notebook may have no address of its own. */
  setAddress(address) {
    try {
      location.hash = address;
    } catch {
      // The panel is open all the same.
    }
  }

  step(by) {
    const { names } = this.mmlu;
    const place = names.indexOf(this.name) + by;
    this.open(names[(place + names.length) % names.length]);
  }

  tick(checked) {
    this.choice.ticked.set(this.name, checked);
    this.choice.changed();
  }

  /** Curves that have a p-value of this subset. */
  curves() {
    return this.mmlu.curves.filter((curve) => this.name in curve.log10_p);
  }

  places() {
    return this.curves().map((curve) => {
      const log10P = curve.log10_p[this.name];
      const below = curve.kept.filter((name) => curve.log10_p[name] <= log10P).length;
      const kept = curve.kept.includes(this.name);
      return { name: curve.name, p: 10 ** log10P, share: below / curve.kept.length, below, of: curve.kept.length, kept };
    });
  }

  showFisher() {
    if (!this.name) return;
    this.choice.show(byId("count"), this.name);
    const places = this.places();
    const cell = (log10P) => ({ text: formatP(log10P), data: { log10P } });
    const rows = this.curves().map((curve, i) => {
      const left = this.choice.leaveOut(curve, this.name);
      const { below, of } = places[i];
      return [curve.name, cell(curve.log10_p[this.name]), `${below} of ${of}`, String(left.others), cell(left.with), cell(left.without)];
    });
    const titles = ["Model", "Its p", "Kept subsets up to it", "Others", "Fisher's p with it", "without it"];
    fillPlainTable("leave-out", titles, rows);
  }

  showExample({ title, fetch }) {
    const texts = this.mmlu.at_hand[this.name];
    byId("at-hand").hidden = !texts;
    byId("not-at-hand").hidden = Boolean(texts);
    byId("fetch").textContent = fetch;
    if (!texts) return;
    byId("first-example").textContent = texts[0];
    byId("how-many").textContent = `The first of ${texts.length}: `;
    this.showExamples(texts, title);
  }
}
