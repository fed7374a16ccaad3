// The page: state, controls, keys and pointers. The state is in the address, so that a network can
// be shared, and everything on the page follows from it.

const PHI = activations(TABLES);
const START = {
  activation: "tanh",
  depth: 10,
  weight: 1.6,
  bias: 0.1,
  noise: 0.001,
  seed: 1,
  stretch: 0, // whether the kernel's curve is stretched
  points: [[-120, -0.8], [-45, 0.9], [30, 0.4], [110, -1.2]], // degree, value
};
const PRESETS = {
  "everyday ReLU": { activation: "relu", depth: 3, weight: 2, bias: 0.1 },
  "forgets": { activation: "tanh", depth: 30, weight: 1, bias: 0.3 },
  "on the edge": { activation: "tanh", depth: 30, weight: 1.76095464, bias: 0.05 },
  "chaos": { activation: "erf", depth: 12, weight: 4, bias: 0.05 },
  "waves": { activation: "sin", depth: 2, weight: 5, bias: 0.2 },
};
const MOST_POINTS = 40;
const DRAWS = 5;

let state = { ...START };
let model = null;
let cursor = [0, 0];
const $ = (id) => document.getElementById(id);
const surveys = new Map();
const diagrams = new Map();
const once = (cache, key, make) => cache.get(key) ?? cache.set(key, make()).get(key);

// ---- from the state to everything that is shown

function compute({ activation, depth, weight, bias, noise, seed, stretch, points }) {
  const phi = PHI[activation];
  const known = once(surveys, activation, () => survey(phi));
  const layers = propagate(phi, depth, weight, bias, ONE_MINUS_COS);
  const top = layers[depth];
  const powers = spectrum(top);
  return {
    phi, depth, weight, bias, layers, points, stretch, variance: top.variance, top, powers,
    regime: regimeOf(known, weight, bias),
    critical: withinReach(criticalWeight(known, bias)),
    diagram: once(diagrams, activation, () => phaseDiagram(known)),
    draws: priorDraws(powers, seed, DRAWS),
    fit: posterior(top, points, noise),
  };
}

// Beyond the sliders the tables end, too.
const withinReach = (weight) => (weight <= RANGE.weight[1] ? weight : Infinity);

function render() {
  model = compute(state);
  const focused = document.activeElement === $("posterior");
  drawKernel($("kernel"), model);
  drawMap($("map"), model);
  plots.phases = drawPhases($("phases"), model);
  drawPrior($("prior"), model);
  plots.posterior = drawPosterior($("posterior"), { ...model, cursor: focused ? cursor : null });
  showControls();
  showWords();
  history.replaceState(null, "", `#${toHash(state)}`);
}

const plots = {};
let pending = false;
function update(changes) {
  state = valid({ ...state, ...changes });
  if (pending) return;
  pending = true;
  requestAnimationFrame(() => {
    pending = false;
    render();
  });
}

const clamp = (x, [low, high]) => Math.min(Math.max(x, low), high);
const tidy = (x, digits) => Number(x.toPrecision(digits));

// Whatever comes from an address or a pointer is brought into range.
function valid(raw) {
  const number = (key, range) =>
    clamp(Number.isFinite(raw[key]) ? raw[key] : START[key], range);
  const points = raw.points.filter((p) => p.every(Number.isFinite)).slice(0, MOST_POINTS);
  return {
    activation: Object.hasOwn(PHI, raw.activation) ? raw.activation : START.activation,
    depth: Math.round(number("depth", [0, 100])),
    weight: tidy(number("weight", RANGE.weight), 10),
    bias: tidy(number("bias", RANGE.bias), 10),
    noise: tidy(number("noise", [1e-6, 1]), 3),
    seed: Math.round(number("seed", [0, 1e6])),
    stretch: Math.round(number("stretch", [0, 1])),
    points: points.map(([t, y]) => [
      Math.round(clamp(t, [-180, 180])),
      Math.round(100 * clamp(y, RANGE.value)) / 100,
    ]),
  };
}

function toHash({ points, ...rest }) {
  const parts = Object.entries(rest).map(([key, value]) => `${key}=${value}`);
  return [...parts, `points=${points.map((p) => p.join(":")).join(",")}`].join("&");
}

function fromHash(hash) {
  const given = Object.fromEntries(new URLSearchParams(hash.replace(/^#/, "")));
  const out = {};
  for (const [key, text] of Object.entries(given)) {
    if (key === "points") out.points = pointsIn(text);
    else if (key in START) out[key] = key === "activation" ? text : Number(text);
  }
  return out;
}

function pointsIn(text) {
  const pairs = text.split(",").map((pair) => pair.split(":").map(Number));
  return pairs.filter((pair) => pair.length === 2);
}

// ---- words

function showControls() {
  $("activation").value = state.activation;
  for (const key of ["depth", "weight", "bias"]) {
    $(key).value = state[key];
    $(`${key}-out`).value = key === "depth" ? state.depth : short(state[key], 4);
  }
  $("noise").value = Math.log10(state.noise);
  $("noise-out").value = short(state.noise);
  $("stretch").setAttribute("aria-pressed", String(state.stretch === 1));
  for (const button of document.querySelectorAll("[data-preset]")) {
    const wanted = Object.entries(PRESETS[button.dataset.preset]);
    button.setAttribute("aria-pressed", String(wanted.every(([key, v]) => state[key] === v)));
  }
}

const layersOf = (x) => `${short(x, 2)} ${x === 1 ? "layer" : "layers"}`;

const MEANINGS = {
  ordered: () => "depth makes all inputs alike",
  bounded: () => "the variance settles, and depth makes all inputs alike",
  chaotic: () => "depth drives even near inputs apart",
  critical: () => "inputs stay distinguishable over many layers",
  unbounded: ({ variance }) =>
    variance > 0 ? "the variance grows without end" : "the signal vanishes with depth",
};

function showWords() {
  const { regime, critical, top } = model;
  const [verdict, meaning] = [$("phase"), MEANINGS[regime.phase](regime)];
  verdict.textContent = regime.phase;
  verdict.dataset.phase = regime.phase;
  $("verdict").textContent = `${meaning}.`;
  $("scale").textContent = scaleWords(regime);
  $("line").textContent =
    critical > 0 && critical < Infinity
      ? `Critical at weight variance ${short(critical, 4)}.`
      : `No critical weight variance up to ${RANGE.weight[1]}.`;
  $("to-line").disabled = !(critical >= RANGE.weight[0] && critical < Infinity);
  $("kernel-words").textContent = kernelWords(top);
  $("map-words").textContent = mapWords(regime);
  $("prior-words").textContent = `Standard deviation ${short(Math.sqrt(top.variance))}.`;
  $("fit-words").textContent = fitWords(model);
  $("code").textContent = python(state);
  $("phases").setAttribute(
    "aria-label",
    `Phase diagram. Weight variance ${state.weight}, bias variance ${state.bias}: ` +
      `${regime.phase}. Arrow keys move the network.`,
  );
  $("posterior").setAttribute(
    "aria-label",
    `Posterior given ${state.points.length} points. Cursor at ${cursor[0]} degrees, value ` +
      `${cursor[1]}. Arrow keys move it, Enter adds or removes a point.`,
  );
}

function scaleWords({ variance, depthScale, varianceScale }) {
  const settles = variance > 0 && variance < Infinity;
  if (!settles && varianceScale < depthScale) {
    return `The variance changes by a factor e every ${layersOf(varianceScale)}.`;
  }
  if (depthScale === Infinity) return "Differences fade slower than any exponential.";
  if (depthScale === 0) return "One layer is enough to forget.";
  return `What is left of the inputs shrinks by a factor e every ${layersOf(depthScale)}.`;
}

function kernelWords({ variance, one }) {
  const angle = (2 * Math.asin(Math.sqrt(Math.min(one[90], 2) / 2)) * 180) / Math.PI;
  const right = `A right angle between inputs leaves the network as ${short(angle)}°.`;
  return `K(0°) = ${short(variance)}. ${right}`;
}

function mapWords({ chi, slopeAtOne, correlation, oneMinusCorrelation }) {
  const point = oneMinusCorrelation > 0 ? short(correlation, 4) : "1";
  const name = chi === slopeAtOne ? "slope at 1, χ = " : "slope at 1: ";
  return `Fixed point c* = ${point}; ${name}${short(slopeAtOne, 4)}.`;
}

function fitWords({ fit, top }) {
  if (fit.noise > state.noise) return `The noise had to be raised to ${short(fit.noise)}.`;
  if (!state.points.length || Math.max(...top.deficit) > state.noise) return "";
  return "The noise covers all that this network still tells apart.";
}

// The same network in Python.
function python({ activation, depth, weight, bias, noise, points }) {
  const row = (values) => values.join(", ");
  return [
    "import numpy as np, nngp",
    "",
    `net = nngp.Architecture(depth=${depth}, activation="${activation}",`,
    `                        weight_var=${weight}, bias_var=${bias})`,
    "curve = nngp.curves.compile_curve(net)  # the kernel: curve(np.cos(angle))",
    ...(points.length
      ? [
          `t = np.radians([${row(points.map(([t]) => t))}])`,
          "X = np.sqrt(2) * np.column_stack([np.cos(t), np.sin(t)])",
          `y = [${row(points.map(([, y]) => y))}]`,
          `posterior = nngp.condition(net, X, y, noise_var=${noise})`,
        ]
      : []),
  ].join("\n");
}

// ---- sliders and buttons

function listen() {
  $("activation").addEventListener("change", (event) => update({ activation: event.target.value }));
  for (const key of ["depth", "weight", "bias"]) {
    $(key).addEventListener("input", (event) => update({ [key]: Number(event.target.value) }));
  }
  $("noise").addEventListener("input", ({ target }) => update({ noise: 10 ** target.value }));
  $("to-line").addEventListener("click", () => update({ weight: model.critical }));
  $("redraw").addEventListener("click", () => update({ seed: state.seed + 1 }));
  $("stretch").addEventListener("click", () => update({ stretch: 1 - state.stretch }));
  $("clear").addEventListener("click", () => update({ points: [] }));
  $("copy").addEventListener("click", copyCode);
  for (const [name, network] of Object.entries(PRESETS)) {
    const button = document.createElement("button");
    button.textContent = name;
    button.dataset.preset = name;
    button.addEventListener("click", () => update(network));
    $("presets").append(button);
  }
  // The event's address, not the page's: a frame drawn before this event has replaced that one.
  window.addEventListener("hashchange", ({ newURL }) => update(fromHash(new URL(newURL).hash)));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", render);
  new ResizeObserver(() => update({})).observe($("panels"));
}

async function copyCode() {
  const text = $("code").textContent;
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    getSelection().selectAllChildren($("code")); // without the permission: select it instead
    document.execCommand("copy");
  }
  $("copy").textContent = "copied";
  setTimeout(() => ($("copy").textContent = "copy"), 1500);
}

const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };

// Where a pointer is, in the units of a plot.
function place(plot, event) {
  const box = plot.svg.getBoundingClientRect();
  return [plot.X.invert(event.clientX - box.left), plot.Y.invert(event.clientY - box.top)];
}

// ---- the phase diagram: drag, tap, or arrow keys

const toHundredths = (x) => Math.round(100 * x) / 100;

function listenToPhases() {
  const svg = $("phases");
  const move = (event) => {
    const [weight, bias] = place(plots.phases, event);
    update({ weight: toHundredths(weight), bias: toHundredths(bias) });
  };
  svg.addEventListener("pointerdown", (event) => {
    // A finger that lands beside the handle may want to scroll: its tap counts, not its movement.
    if (event.pointerType !== "mouse" && !event.target.matches(".handle, .handle-area")) return;
    svg.setPointerCapture(event.pointerId);
    move(event);
  });
  svg.addEventListener("pointermove", (event) => {
    if (svg.hasPointerCapture(event.pointerId)) move(event);
  });
  svg.addEventListener("click", move);
  svg.addEventListener("keydown", (event) => {
    const step = ARROWS[event.key];
    if (!step) return;
    event.preventDefault();
    const size = event.shiftKey ? 0.01 : 0.05;
    update({
      weight: toHundredths(state.weight + size * step[0]),
      bias: toHundredths(state.bias + size * step[1]),
    });
  });
}

// ---- the posterior: tap to add, tap a point to remove it, drag to move it; or the keys

const REACH = 16; // pixels

function pointUnder(event) {
  const plot = plots.posterior;
  const box = plot.svg.getBoundingClientRect();
  const away = state.points.map(([t, y]) =>
    Math.hypot(plot.X(t) - event.clientX + box.left, plot.Y(y) - event.clientY + box.top),
  );
  const nearestOne = away.indexOf(Math.min(...away));
  return away[nearestOne] <= REACH ? nearestOne : -1;
}

const replaced = (index, point) => state.points.map((p, i) => (i === index ? point : p));
const without = (index) => state.points.filter((_, i) => i !== index);

function listenToPosterior() {
  const svg = $("posterior");
  let held = null; // the point under the pointer, and whether it was moved
  svg.addEventListener("pointerdown", (event) => {
    held = { index: pointUnder(event), moved: false, x: event.clientX, y: event.clientY };
    if (held.index >= 0) svg.setPointerCapture(event.pointerId);
  });
  svg.addEventListener("pointermove", (event) => {
    if (!held || Math.hypot(event.clientX - held.x, event.clientY - held.y) < 4) return;
    held.moved = true;
    if (held.index >= 0) update({ points: replaced(held.index, place(plots.posterior, event)) });
  });
  svg.addEventListener("pointercancel", () => (held = null));
  svg.addEventListener("pointerup", (event) => {
    if (held && !held.moved) {
      if (held.index >= 0) update({ points: without(held.index) });
      else update({ points: [...state.points, place(plots.posterior, event)] });
    }
    held = null;
  });
  svg.addEventListener("keydown", pressed);
  svg.addEventListener("focus", () => update({}));
  svg.addEventListener("blur", () => update({}));
}

function pressed(event) {
  const step = ARROWS[event.key];
  if (step) {
    const [dt, dy] = event.shiftKey ? [1, 0.05] : [5, 0.25];
    cursor = [
      clamp(cursor[0] + dt * step[0], [-180, 180]),
      toHundredths(clamp(cursor[1] + dy * step[1], RANGE.value)),
    ];
    update({});
  } else if (event.key === "Enter" || event.key === " ") {
    const index = state.points.findIndex(([t, y]) => near([t, y], cursor));
    update({ points: index >= 0 ? without(index) : [...state.points, cursor] });
  } else if (event.key === "Delete" || event.key === "Backspace") {
    const away = state.points.map(([t]) => apart(t, cursor[0]));
    update({ points: without(away.indexOf(Math.min(...away))) });
  } else return;
  event.preventDefault();
}

const near = ([s, x], [t, y]) => apart(s, t) <= 3 && Math.abs(x - y) <= 0.15;

// ---- inside another page: tell it our height, and take its colours

function listenToHost() {
  if (window.parent === window) return;
  document.documentElement.classList.add("embedded");
  new ResizeObserver(() => {
    window.parent.postMessage({ explorerHeight: document.body.scrollHeight }, "*");
  }).observe(document.body);
  window.addEventListener("message", ({ data }) => {
    if (!data || !["light", "dark", "auto"].includes(data.explorerTheme)) return;
    document.documentElement.dataset.theme = data.explorerTheme;
    render();
  });
}

// What tests read: the state, a way to set it, and all numbers of the network that is shown.
window.explorer = {
  get state() {
    return structuredClone(state);
  },
  set(changes) {
    state = valid({ ...state, ...changes });
    render();
  },
  values() {
    const { top, regime, critical, fit, powers } = model;
    return {
      variance: top.variance, // K(0)
      deficit: top.deficit, // K(0) - K(t) at t = 0 .. 180 degrees
      spectrum: powers, // K(t) = sum of spectrum[k] cos(k t)
      regime, // variance, chi, correlation, depthScale, varianceScale, phase
      critical, // weight variance; 0 or infinite if there is none up to 5
      mean: fit.mean, // of the posterior at -180 .. 180 degrees
      posteriorVariance: fit.variance,
      noise: fit.noise,
      code: python(state),
    };
  },
};

for (const name of Object.keys(PHI)) $("activation").append(new Option(name, name));
state = valid({ ...START, ...fromHash(location.hash) });
listen();
listenToPhases();
listenToPosterior();
listenToHost();
render();
