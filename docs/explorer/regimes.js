// Signal propagation: what depth does to the variance of one input and the correlation of two.
//
//     variance      q  ->  bias + weight E[phi^2],              fixed point q*
//     1 - c         e  ->  (weight / q*) (F(1) - F(1 - e)),     fixed point e* = 1 - c*
//     chi           weight E[phi'^2] at q*: the slope of the correlation map at c = 1
//
// The rules are those of nngp.regimes, and so are the numbers.

const LOWEST = 1e-60; // variances that represent zero and infinity
const HIGHEST = 1e60;
const CRITICAL = 1e-9; // |chi - 1| up to which a network counts as critical
const GRID = Array.from({ length: 601 }, (_, i) => -30 + i * 0.1); // of log q

// The root of f between a and b, where its signs differ: Chandrupatla's method, which interpolates
// where that is safe and bisects elsewhere.
function findRoot(f, a, b) {
  let [fa, fb, step] = [f(a), f(b), 0.5];
  if (fa === 0) return a;
  for (let i = 0; i < 100; i++) {
    const x = a + step * (b - a);
    const fx = f(x);
    const same = fx > 0 === fa > 0;
    const [c, fc] = same ? [a, fa] : [b, fb];
    if (!same) [b, fb] = [a, fa];
    [a, fa] = [x, fx];
    const size = Math.max(Math.abs(a), Math.abs(b));
    const least = (4e-16 * size + 1e-300) / Math.abs(b - a);
    if (least > 0.5 || fa === 0) break;
    step = Math.min(Math.max(interpolated([a, b, c], [fa, fb, fc]), least), 1 - least);
  }
  return Math.abs(fa) < Math.abs(fb) ? a : b;
}

function interpolated([a, b, c], [fa, fb, fc]) {
  const place = (a - b) / (c - b);
  const height = (fa - fb) / (fc - fb);
  if (!(height * height < place && (1 - height) ** 2 < 1 - place)) return 0.5;
  return (
    ((fa / (fb - fa)) * fc) / (fb - fc) +
    ((((c - a) / (b - a)) * fa) / (fc - fa)) * (fb / (fc - fb))
  );
}

// f'(x) for a function that is smooth on the scale h around x.
function derivative(f, x, h) {
  return (8 * (f(x + h) - f(x - h)) - (f(x + 2 * h) - f(x - 2 * h))) / (12 * h);
}

// E[phi^2], its slope in q, and E[phi'^2], at one variance.
function momentsAt(phi, q) {
  const at = Math.min(Math.max(q, LOWEST), HIGHEST);
  return {
    second: secondMoment(phi, at),
    rise: derivative((x) => secondMoment(phi, at * Math.exp(x)), 0, 1e-3) / at,
    slope: phi.jumps ? Infinity : steepness(phi, at),
  };
}

// E[phi'^2] as the start of the deficit, which is q E[phi'^2] m.
function steepness(phi, q) {
  const m = 1e-24;
  return (phi.even(q, m) + phi.odd(q, m)) / m / q;
}

// What depends on the activation alone, on a grid of variances.
function survey(phi) {
  const at = GRID.map((x) => momentsAt(phi, Math.exp(x)));
  return {
    phi,
    share: at.map(({ second }, i) => second / Math.exp(GRID[i])),
    rise: at.map(({ rise }) => rise),
    slope: at.map(({ slope }) => slope),
    falls: at.some(({ rise, second }, i) => rise * Math.exp(GRID[i]) < -1e-9 * second),
    flat: phi.rough ? 1e-9 : 1e-13,
  };
}

// Roots of f(log q), whose values on the grid are given; what is below `flat` counts as zero.
function rootsOnGrid(f, values, flat) {
  const roots = [];
  let last = -1;
  values.forEach((value, i) => {
    if (!(Math.abs(value) > flat)) return;
    if (last >= 0 && values[last] > 0 !== value > 0) roots.push(findRoot(f, GRID[last], GRID[i]));
    last = i;
  });
  return roots;
}

// The limit of the variance with depth, from an input of unit variance; may be 0 or infinite.
function limitVariance(known, weight, bias) {
  const { phi, flat } = known;
  const excess = (x) => (bias + weight * secondMoment(phi, Math.exp(x))) / Math.exp(x) - 1;
  let x = Math.log(weight + bias);
  if (Math.abs(excess(x)) <= flat) return weight + bias;
  // Where V decreases it can step over a fixed point: follow some layers first.
  for (let i = 0; known.falls && i < 100; i++) {
    x = Math.log(bias + weight * secondMoment(phi, Math.exp(x)));
  }
  const up = excess(x);
  const values = known.share.map((share, i) => bias * Math.exp(-GRID[i]) + weight * share - 1);
  const roots = rootsOnGrid(excess, values, flat);
  if (Math.abs(up) <= flat) return Math.exp(nearest(roots, x));
  const ahead = roots.filter((root) => (up > 0 ? root > x : root < x));
  if (!ahead.length) return up > 0 ? Infinity : 0;
  return Math.exp(up > 0 ? Math.min(...ahead) : Math.max(...ahead));
}

function nearest(roots, x) {
  return roots.reduce((best, r) => (Math.abs(r - x) < Math.abs(best - x) ? r : best), Infinity);
}

// dF/dc at 1 - e.
function slopeAt(phi, q, e) {
  return derivative((x) => deficitAt(phi, q, x), e, 1e-3 * Math.min(e, 2 - e));
}

// Everything that the page says about a network in the limit of depth.
function regimeOf(known, weight, bias) {
  const { phi } = known;
  const variance = limitVariance(known, weight, bias);
  const finite = variance > 0 && variance < Infinity;
  const { slope, rise } = momentsAt(phi, variance);
  const chi = weight * slope;
  const { q, gain, atOne } = limitMap(phi, weight, variance, finite, chi);
  const tolerance = finite ? CRITICAL : 1e-6;
  const apart = atOne > 1 + tolerance;
  const e = apart ? fixedPoint(phi, q, gain) : 0;
  const frozen = !finite && Math.abs(atOne - 1) <= tolerance;
  const correlationSlope = apart ? gain * slopeAt(phi, q, e) : frozen ? 1 : atOne;
  return {
    variance,
    chi,
    slopeAtOne: atOne, // of the correlation map; chi itself where q* is finite
    oneMinusCorrelation: e,
    correlation: 1 - e,
    depthScale: depthOf(correlationSlope),
    varianceScale: depthOf(Math.abs(weight * rise)),
    phase: phaseOf(phi, finite, chi),
    layer: { q, gain },
  };
}

// The correlation map e -> gain D(e): at q*, or far on the way to zero or infinity.
function limitMap(phi, weight, variance, finite, chi) {
  if (finite) return { q: variance, gain: weight / variance, atOne: chi };
  const q = variance > 0 ? 1e25 : 1e-25;
  const second = secondMoment(phi, q);
  return { q, gain: 1 / second, atOne: (steepness(phi, q) * q) / second };
}

// The stable e* > 0: gain D(e)/e falls through 1 once.
function fixedPoint(phi, q, gain) {
  const excess = (root) => (gain * deficitAt(phi, q, root * root)) / (root * root) - 1;
  if (excess(1) >= -1e-12) return 1; // without bias and mean
  return findRoot(excess, 1e-10, 1) ** 2;
}

function depthOf(slope) {
  return Math.abs(slope - 1) <= CRITICAL ? Infinity : 1 / Math.abs(Math.log(slope));
}

function phaseOf(phi, finite, chi) {
  if (Math.abs(chi - 1) <= CRITICAL) return "critical";
  if (!finite && phi.rate > 0) return "unbounded";
  if (chi > 1) return "chaotic";
  return phi.rate > 0 ? "bounded" : "ordered";
}

// The critical weight variance at one bias variance: the first at which inputs cease to converge
// at a finite variance. Every way in which that can happen is a root in q (regimes/criticality.py):
// chi = 1; q* ceases to exist; the unit input starts on an unstable q*; q* becomes infinite.
function criticalWeight(known, bias) {
  const { phi } = known;
  const candidates = [...fixedStarts(known).map((q) => q - bias)];
  for (const [name, values] of [["slope", known.slope], ["rise", known.rise]]) {
    const share = (x, rate, second) => 1 - second / rate - bias * Math.exp(-x);
    const at = (x) => {
      const moments = momentsAt(phi, Math.exp(x));
      return share(x, moments[name], moments.second * Math.exp(-x));
    };
    const grid = GRID.map((x, i) => (values[i] > 0 ? share(x, values[i], known.share[i]) : NaN));
    for (const x of rootsOnGrid(at, grid, known.flat)) {
      candidates.push(1 / momentsAt(phi, Math.exp(x))[name]);
    }
  }
  if (phi.rate > 0) candidates.push(1 / phi.rate);
  if (bias === 0) candidates.push(1 / momentsAt(phi, 0).slope);
  return firstEnd(known, bias, candidates);
}

// Initial variances weight + bias that the first layer does not change.
function fixedStarts(known) {
  const values = GRID.map((x, i) => known.share[i] * Math.exp(x) - 1);
  const f = (x) => secondMoment(known.phi, Math.exp(x)) - 1;
  return rootsOnGrid(f, values, known.flat).map(Math.exp);
}

function firstEnd(known, bias, candidates) {
  const points = candidates.filter((w) => w > 0 && w < 1e30).sort((a, b) => a - b);
  if (!points.length) return isBelow(known, 1, bias) ? Infinity : 0;
  const between = points.map((w, i) => (i ? Math.sqrt(w * points[i - 1]) : w / 2));
  between.push(2 * points.at(-1));
  const below = between.map((w) => isBelow(known, w, bias));
  const end = points.findIndex((_, i) => below[i] && !below[i + 1]);
  return end >= 0 ? points[end] : below[0] ? Infinity : 0;
}

function isBelow(known, weight, bias) {
  const variance = limitVariance(known, weight, bias);
  return variance < Infinity && weight * momentsAt(known.phi, variance).slope < 1;
}
