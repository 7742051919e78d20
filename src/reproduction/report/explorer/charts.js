"use strict";

// Charts are drawn at the width that they have, so that their text stays readable on a phone.
const HEIGHT = 240;
const MARGIN = { left: 44, right: 12, top: 22, bottom: 40 };

function svg(tag, attributes = {}, text = null) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  if (text !== null) node.textContent = text;
  return node;
}

function scale([from, to], [start, stop]) {
  return (value) => start + ((value - from) / (to - from || 1)) * (stop - start);
}

function ticks(low, high, count) {
  const raw = (high - low) / count || 1;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = power * [1, 2, 5, 10].find((factor) => factor * power >= raw);
  const first = Math.ceil(low / step);
  const last = Math.floor(high / step);
  return Array.from({ length: last - first + 1 }, (_, i) => Number(((first + i) * step).toPrecision(6)));
}

function number(value) {
  return value.toLocaleString("en", { maximumFractionDigits: 2 }).replace("-", "−");
}

function fixed(value) {
  return value.toFixed(2).replace("-", "−");
}

function frame(container, label) {
  const width = Math.max(240, container.clientWidth);
  const root = svg("svg", { viewBox: `0 0 ${width} ${HEIGHT}`, role: "img", "aria-label": label });
  container.replaceChildren(root);
  const x = [MARGIN.left, width - MARGIN.right];
  const y = [HEIGHT - MARGIN.bottom, MARGIN.top];
  return { root, x, y };
}

function xAxis({ root, x, y }, low, high, title) {
  const at = scale([low, high], x);
  root.append(svg("line", { class: "axis", x1: x[0], x2: x[1], y1: y[0], y2: y[0] }));
  for (const tick of ticks(low, high, (x[1] - x[0]) / 45)) {
    root.append(svg("text", { x: at(tick), y: y[0] + 16, "text-anchor": "middle" }, number(tick)));
  }
  const middle = (x[0] + x[1]) / 2;
  root.append(svg("text", { x: middle, y: HEIGHT - 6, "text-anchor": "middle" }, title));
}

/** Histogram of the null distribution, and the canonical value as a line. */
function drawNull(container, outcome, symbol) {
  const { low, high, counts } = outcome.null;
  const value = outcome.canonical;
  const label = `Histogram of ${symbol} for orders drawn at random, from ${number(low)} to ${number(high)}; the published order has ${symbol} = ${number(value)}`;
  const area = frame(container, label);
  const { root, x, y } = area;
  const room = 0.04 * (Math.max(high, value) - Math.min(low, value));
  const domain = [Math.min(low, value) - room, Math.max(high, value) + room];
  const at = scale(domain, x);
  const up = scale([0, Math.max(...counts)], y);
  const bin = (high - low) / counts.length;
  counts.forEach((count, i) => {
    if (!count) return;
    const from = at(low + i * bin);
    root.append(svg("rect", {
      class: "null", x: from, width: Math.max(1, at(low + (i + 1) * bin) - from - 0.5),
      y: up(count), height: y[0] - up(count),
    }));
  });
  const total = counts.reduce((sum, count) => sum + count, 0);
  for (const tick of ticks(0, Math.max(...counts) / total, 5)) {
    root.append(svg("text", { x: x[0] - 6, y: up(tick * total) + 4, "text-anchor": "end" }, `${number(100 * tick)}%`));
  }
  xAxis(area, ...domain, symbol);
  const place = at(value);
  root.append(svg("line", { class: "canonical", x1: place, x2: place, y1: y[0], y2: y[1] }));
  const anchor = place > (x[0] + x[1]) / 2 ? "end" : "start";
  root.append(svg("text", { class: "mark", x: place, y: y[1] - 8, "text-anchor": anchor }, `published order: ${fixed(value)}`));
}

/** Step curves of sorted p-values against the uniform law; `band` is its half-width for one value. */
function drawEcdf(container, curves, band) {
  const drawn = curves.filter((curve) => curve.values.length);
  const least = Math.min(...drawn.map((curve) => curve.values.length));
  const shares = drawn.map((c) => `${c.label} ${number(100 * c.values.filter((p) => p <= 0.05).length / c.values.length)}%`);
  const area = frame(container, `Share of subsets with a p-value at most so large, a curve for each model; at most 0.05 are ${shares.join(", ") || "none"}`);
  const { root, x, y } = area;
  const at = scale([0, 1], x);
  const up = scale([0, 1], y);
  const clip = (value) => up(Math.min(1, Math.max(0, value)));
  if (drawn.length) {
    const wide = band / Math.sqrt(least);
    const edge = Array.from({ length: 51 }, (_, i) => i / 50);
    const points = [...edge.map((v) => [at(v), clip(v + wide)]), ...edge.reverse().map((v) => [at(v), clip(v - wide)])];
    root.append(svg("polygon", { class: "band", points: points.map((p) => p.join(",")).join(" ") }));
  }
  for (const tick of [0, 0.25, 0.5, 0.75, 1]) {
    root.append(svg("text", { x: x[0] - 6, y: up(tick) + 4, "text-anchor": "end" }, `${100 * tick}%`));
  }
  root.append(svg("line", { class: "mean", x1: at(0), y1: up(0), x2: at(1), y2: up(1) }));
  for (const { values, colour, marked } of drawn) {
    const n = values.length;
    const steps = values.map((p, i) => `H${at(p)}V${up((i + 1) / n)}`).join("");
    const line = svg("path", { class: "curve", d: `M${at(0)},${up(0)}${steps}H${at(1)}` });
    line.style.stroke = colour;
    root.append(line);
    if (marked === undefined) continue;
    const p = 10 ** marked;
    const dot = svg("circle", { class: "dot", cx: at(p), cy: up(values.filter((v) => v <= p).length / n), r: 5 });
    dot.style.fill = colour;
    root.append(dot);
  }
  xAxis(area, 0, 1, "p-value");
}

/** One bar per shard; `name` describes a shard, `choose` is called with its number. */
function drawShards(container, outcome, name, choose) {
  const values = outcome.by_shard;
  const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
  const what = outcome.unit === "z" ? "z-score" : "difference in nats";
  const label = `Bars: ${what} of each of ${values.length} shards; mean ${number(mean)}, ${values.filter((v) => v > 0).length} above zero`;
  const area = frame(container, label);
  const { root, x, y } = area;
  const domain = [Math.min(0, ...values), Math.max(0, ...values)];
  const up = scale(domain, y);
  const wide = (x[1] - x[0]) / values.length;
  for (const tick of ticks(...domain, 5)) {
    root.append(svg("line", { class: tick ? "axis" : "zero", x1: x[0], x2: x[1], y1: up(tick), y2: up(tick) }));
    root.append(svg("text", { x: x[0] - 6, y: up(tick) + 4, "text-anchor": "end" }, number(tick)));
  }
  values.forEach((value, shard) => {
    const bar = svg("rect", {
      class: "shard", x: x[0] + shard * wide + 0.1 * wide, width: Math.max(1, 0.8 * wide),
      y: Math.min(up(0), up(value)), height: Math.max(0.5, Math.abs(up(value) - up(0))),
    });
    bar.append(svg("title", {}, `${name(shard)}: ${fixed(value)}`));
    bar.addEventListener("click", () => choose(shard));
    root.append(bar);
  });
  root.append(svg("line", { class: "mean", x1: x[0], x2: x[1], y1: up(mean), y2: up(mean) }));
  root.append(svg("text", { class: "mark", x: x[1], y: y[1] - 8, "text-anchor": "end" }, `mean ${fixed(mean)}`));
  const at = scale([0.5, values.length + 0.5], x);
  for (const tick of ticks(1, values.length, (x[1] - x[0]) / 45).filter(Number.isInteger)) {
    root.append(svg("text", { x: at(tick), y: y[0] + 16, "text-anchor": "middle" }, tick));
  }
  root.append(svg("text", { x: (x[0] + x[1]) / 2, y: HEIGHT - 6, "text-anchor": "middle" }, "shard"));
}
