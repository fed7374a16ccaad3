// The five panels. Each takes its <svg> and what is known of the network, and draws itself anew.

const square = (width) => Math.min(width, 420) * 0.78;
const RANGE = { weight: [0.05, 5], bias: [0, 2], value: [-3, 3] };
const degrees = (t) => `${short(t)}°`;

// (a) K against the angle, with some of the shallower networks behind it. Stretched, each curve
// goes from 1 to 0: the shape that depth leaves, however little of it.
function drawKernel(svg, { layers, depth, stretch }) {
  const shape = ({ one }) => {
    const most = stretch ? Math.max(...one) : 1;
    return one.map((e) => 1 - e / (most || 1));
  };
  const now = shape(layers[depth]);
  const shown = earlier(depth).map((l) => shape(layers[l]));
  const lowest = Math.min(0, ...now, ...shown.flat());
  const plot = frame(svg, {
    x: [0, 180], y: [lowest < -1e-9 ? -1.05 : 0, 1.05], height: square,
    xLabel: "angle between two inputs", yLabel: stretch ? "K, stretched" : "K / K(0°)",
    xTicks: [0, 45, 90, 135, 180], xFormat: degrees,
  });
  shown.forEach((values) => curve(plot, DEGREES, values, "line faint"));
  curve(plot, DEGREES, now, "line main").id = "kernel-curve";
}

// Up to ten depths below this one.
function earlier(depth) {
  const count = Math.min(depth, 10);
  return Array.from({ length: count }, (_, i) => Math.round((i * depth) / count));
}

// (b) the correlation of two inputs in the next layer against that in this one.
function drawMap(svg, { phi, regime, layers, depth }) {
  const { q, gain } = regime.layer;
  const plot = frame(svg, {
    x: [-1, 1], y: [-1, 1], xLabel: "correlation in one layer", yLabel: "in the next layer",
    height: square, xTicks: [-1, -0.5, 0, 0.5, 1], yTicks: [-1, -0.5, 0, 0.5, 1],
  });
  const e = DEGREES.map((t) => ONE_MINUS_COS[t]);
  const next = e.map((value) => 1 - gain * deficitAt(phi, q, value));
  curve(plot, [-1, 1], [-1, 1], "line guide");
  tangent(plot, regime.slopeAtOne);
  curve(plot, e.map((v) => 1 - v), next, "line main").id = "map-curve";
  const path = layers.slice(0, depth + 1).map((layer) => 1 - layer.one[90]);
  path.slice(1).forEach((c, l) => dot(plot, path[l], c, 2.5, "step"));
  dot(plot, 1, 1, 5, regime.oneMinusCorrelation > 0 ? "fixed open" : "fixed");
  if (regime.oneMinusCorrelation > 0) {
    dot(plot, regime.correlation, regime.correlation, 5, "fixed").id = "fixed-point";
  }
}

// The slope of the map at correlation 1, as a short line.
function tangent(plot, slope) {
  if (!Number.isFinite(slope)) return;
  const dx = 0.35 / Math.hypot(1, slope);
  curve(plot, [1 - dx, 1], [1 - slope * dx, 1], "line tangent");
}

// (c) the phase diagram: paler where signals travel deeper.
function drawPhases(svg, { weight, bias, diagram }) {
  const plot = frame(svg, {
    x: RANGE.weight, y: RANGE.bias, xLabel: "weight variance", yLabel: "bias variance",
    height: square, xTicks: [1, 2, 3, 4, 5], yTicks: [0, 0.5, 1, 1.5, 2],
  });
  const { X, Y, inside } = plot;
  add(inside, "image", {
    href: picture(diagram), preserveAspectRatio: "none",
    x: X(RANGE.weight[0]), y: Y(RANGE.bias[1]),
    width: X(RANGE.weight[1]) - X(RANGE.weight[0]), height: Y(RANGE.bias[0]) - Y(RANGE.bias[1]),
  });
  const line = diagram.line.filter(([w]) => w > 0 && w < 6);
  if (line.length > 1) {
    curve(plot, line.map(([w]) => w), line.map(([, b]) => b), "line critical").id = "critical-line";
  }
  for (const { name, at: [w, b] } of diagram.names) {
    add(inside, "text", { x: X(w), y: Y(b), class: "phase-name" }, name);
  }
  dot(plot, weight, bias, 22, "handle-area");
  dot(plot, weight, bias, 8, "handle").id = "network";
  return plot;
}

const CELLS = [66, 48];

// Depth scales on a grid, the critical line, and a name in the middle of each phase.
function phaseDiagram(known) {
  const cells = [];
  for (let j = 0; j < CELLS[1]; j++) {
    for (let i = 0; i < CELLS[0]; i++) {
      const weight = mix(RANGE.weight, (i + 0.5) / CELLS[0]);
      const bias = mix(RANGE.bias, 1 - (j + 0.5) / CELLS[1]);
      cells.push({ weight, bias, ...regimeOf(known, weight, bias) });
    }
  }
  // The line rises from bias 0 like a root: points crowd there.
  const line = Array.from({ length: 61 }, (_, i) => 2 * (i / 60) ** 3).map((b) => [
    criticalWeight(known, b),
    b,
  ]);
  return { cells, line, names: namesOf(cells) };
}

const mix = ([a, b], t) => a + t * (b - a);

// A name at the centre of each phase that covers a part of the diagram worth naming.
function namesOf(cells) {
  return ["ordered", "bounded", "chaotic", "unbounded"].flatMap((name) => {
    const own = cells.filter(({ phase }) => phase === name);
    if (own.length < 0.04 * cells.length) return [];
    const mean = (key) => own.reduce((sum, cell) => sum + cell[key], 0) / own.length;
    return [{ name, at: [mean("weight"), mean("bias")] }];
  });
}

// Layers in which a network forgets: by its correlation, or by a variance that does not settle.
function forgets({ variance, depthScale, varianceScale }) {
  const settles = variance > 0 && variance < Infinity;
  return settles ? depthScale : Math.min(depthScale, varianceScale);
}

function picture({ cells }) {
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = CELLS;
  const context = canvas.getContext("2d");
  const image = context.createImageData(...CELLS);
  const colours = { calm: colourOf("--calm"), wild: colourOf("--wild") };
  cells.forEach((cell, i) => {
    const calm = cell.phase === "ordered" || cell.phase === "bounded";
    const reach = Math.log(Math.max(forgets(cell), 0.5) / 0.5) / Math.log(100);
    image.data.set(calm ? colours.calm : colours.wild, 4 * i);
    image.data[4 * i + 3] = 235 * Math.max(0.06, 1 - reach) ** 1.2;
  });
  context.putImageData(image, 0, 0);
  return canvas.toDataURL();
}

// A colour of the style sheet as numbers: the browser resolves light and dark.
function colourOf(name) {
  const probe = document.createElement("span");
  probe.style.color = `var(${name})`;
  document.body.append(probe);
  const parts = getComputedStyle(probe).color.match(/[\d.]+/g).map(Number);
  probe.remove();
  return parts.slice(0, 3);
}

// (d) functions drawn from the prior.
function drawPrior(svg, { draws, variance }) {
  const size = 2.6 * Math.sqrt(variance);
  const plot = frame(svg, {
    x: [-180, 180], y: [-size, size], xLabel: "direction of the input", height: square,
    xTicks: [-180, -90, 0, 90, 180], xFormat: degrees, yFormat: (y) => short(y, 2),
  });
  draws.forEach((values, i) => curve(plot, CIRCLE, values, `line draw draw-${i}`));
  return plot;
}

// (e) mean and 95% band of the posterior, with the points.
function drawPosterior(svg, { points, fit, cursor }) {
  const plot = frame(svg, {
    x: [-180, 180], y: RANGE.value, xLabel: "direction of the input", yLabel: "value",
    height: (width) => Math.max(230, Math.min(340, width * 0.6)),
    xTicks: [-180, -90, 0, 90, 180], yTicks: [-3, -2, -1, 0, 1, 2, 3], xFormat: degrees,
  });
  const spread = fit.variance.map((v) => 1.96 * Math.sqrt(v));
  const low = fit.mean.map((m, i) => m - spread[i]);
  const high = fit.mean.map((m, i) => m + spread[i]);
  band(plot, CIRCLE, low, high, "band");
  curve(plot, CIRCLE, fit.mean, "line main").id = "posterior-mean";
  points.forEach(([t, y]) => {
    dot(plot, t, y, 18, "handle-area");
    dot(plot, t, y, 5.5, "point");
  });
  if (cursor) drawCursor(plot, cursor);
  return plot;
}

function drawCursor(plot, [t, y]) {
  const { X, Y, over } = plot;
  const group = add(over, "g", { class: "cursor", id: "cursor" });
  add(group, "line", { x1: X(t), x2: X(t), y1: Y(RANGE.value[0]), y2: Y(RANGE.value[1]) });
  add(group, "line", { x1: X(-180), x2: X(180), y1: Y(y), y2: Y(y) });
  add(group, "circle", { cx: X(t), cy: Y(y), r: 8 });
}
