// Drawing: small helpers for SVG. Colours are classes, so that the style sheet alone knows them.

const SVG = "http://www.w3.org/2000/svg";

function add(parent, name, attributes = {}, text = "") {
  const node = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  if (text) node.textContent = text;
  parent.append(node);
  return node;
}

const linear = ([a, b], [from, to]) => {
  const scale = (x) => from + ((x - a) / (b - a)) * (to - from);
  scale.invert = (pixel) => a + ((pixel - from) / (to - from)) * (b - a);
  return scale;
};

// About `count` round numbers between a and b.
function ticks(a, b, count) {
  const raw = (b - a) / count;
  const unit = 10 ** Math.floor(Math.log10(raw));
  const step = unit * [1, 2, 5, 10].find((s) => s * unit >= raw * 0.999);
  const out = [];
  for (let i = Math.ceil(a / step - 1e-9); i * step <= b + 1e-9 * step; i++) out.push(i * step);
  return out;
}

// A number with few digits, and a typographic minus.
function short(x, digits = 3) {
  if (!Number.isFinite(x)) return x > 0 ? "∞" : "−∞";
  const size = Math.abs(x);
  if (size === 0) return "0";
  const text =
    size < 1e-3 || size >= 1e5
      ? x.toExponential(Math.max(digits - 2, 0)).replace("e+", "e")
      : String(Number(x.toPrecision(digits)));
  const [front, power] = text.split("e");
  const shown = power ? `${front === "1" ? "" : `${front}·`}10${superscript(power)}` : front;
  return shown.replace("-", "−");
}

const SUPERSCRIPTS = "⁰¹²³⁴⁵⁶⁷⁸⁹";
function superscript(power) {
  return power.replace("-", "⁻").replace(/\d/g, (digit) => SUPERSCRIPTS[digit]);
}

const MARGIN = { left: 46, right: 12, top: 12, bottom: 40 };

// An empty frame with axes, as wide as the panel is now.
function frame(svg, options) {
  const width = svg.clientWidth || 360;
  const height = options.height(width);
  svg.replaceChildren();
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  svg.style.height = `${height}px`;
  const X = linear(options.x, [MARGIN.left, width - MARGIN.right]);
  const Y = linear(options.y, [height - MARGIN.bottom, MARGIN.top]);
  drawGrid(svg, X, Y, options);
  drawLabels(svg, width, height, options);
  const inside = clipped(svg, width, height); // curves end at the frame, dots on it stay whole
  return { svg, X, Y, inside, over: add(svg, "g") };
}

function drawGrid(svg, X, Y, { x, y, xTicks, yTicks, xFormat = short, yFormat = short }) {
  const grid = add(svg, "g", { class: "grid", "aria-hidden": "true" });
  for (const t of xTicks) {
    add(grid, "line", { x1: X(t), x2: X(t), y1: Y(y[0]), y2: Y(y[1]) });
    add(grid, "text", { x: X(t), y: Y(y[0]) + 16, "text-anchor": "middle" }, xFormat(t));
  }
  for (const t of yTicks ?? ticks(...y, 5)) {
    add(grid, "line", { x1: X(x[0]), x2: X(x[1]), y1: Y(t), y2: Y(t) });
    add(grid, "text", { x: X(x[0]) - 6, y: Y(t) + 4, "text-anchor": "end" }, yFormat(t));
  }
}

function drawLabels(svg, width, height, { xLabel, yLabel = "" }) {
  const labels = add(svg, "g", { class: "names", "aria-hidden": "true" });
  const at = { x: width - MARGIN.right, y: height - 6, "text-anchor": "end" };
  add(labels, "text", at, xLabel);
  const middle = (height - MARGIN.bottom + MARGIN.top) / 2;
  const turned = { transform: `translate(12 ${middle}) rotate(-90)`, "text-anchor": "middle" };
  add(labels, "text", turned, yLabel);
}

function clipped(svg, width, height) {
  const id = `clip-${svg.id}`;
  const { left, right, top, bottom } = MARGIN;
  add(add(svg, "clipPath", { id }), "rect", {
    x: left,
    y: top - 1,
    width: width - left - right,
    height: height - bottom - top + 2,
  });
  return add(svg, "g", { "clip-path": `url(#${id})` });
}

const LIMIT = 1e5; // pixels, far outside of any frame

function pathOf(X, Y, xs, ys) {
  const clamp = (v) => Math.max(-LIMIT, Math.min(LIMIT, v)).toFixed(2);
  return xs.map((x, i) => `${i ? "L" : "M"}${X(x).toFixed(2)} ${clamp(Y(ys[i]))}`).join("");
}

function curve({ inside, X, Y }, xs, ys, className) {
  return add(inside, "path", { d: pathOf(X, Y, xs, ys), class: className });
}

// The area between two curves.
function band({ inside, X, Y }, xs, low, high, className) {
  const back = pathOf(X, Y, [...xs].reverse(), [...low].reverse()).replace("M", "L");
  return add(inside, "path", { d: `${pathOf(X, Y, xs, high)}${back}Z`, class: className });
}

function dot({ over, X, Y }, x, y, r, className) {
  return add(over, "circle", { cx: X(x), cy: Y(y), r, class: className });
}
