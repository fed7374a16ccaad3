// The Gaussian process on a circle: inputs at whole degrees, all of norm x.x/d = 1.
//
// Two inputs that are t degrees apart have covariance K(t), t = 0 .. 180, so one run of the
// recursion is enough for the curve, for draws and for the posterior.

const DEGREES = Array.from({ length: 181 }, (_, t) => t);
const CIRCLE = Array.from({ length: 361 }, (_, i) => i - 180);
// 1 - cos t without cancellation
const ONE_MINUS_COS = DEGREES.map((t) => 2 * Math.sin((t * Math.PI) / 360) ** 2);
const COSINES = Array.from({ length: 360 }, (_, t) => Math.cos((t * Math.PI) / 180));
const cosDegrees = (t) => COSINES[((t % 360) + 360) % 360];
const sinDegrees = (t) => cosDegrees(t - 90);

const apart = (s, t) => {
  const d = Math.abs(s - t) % 360;
  return d > 180 ? 360 - d : d;
};

// K(t) = sum_k spectrum[k] cos(k t). Deficits are summed, not K: where all inputs are nearly alike
// the constant would hide the rest.
function spectrum({ variance, deficit }) {
  return DEGREES.map((k) => {
    let sum = 0;
    for (let t = 0; t <= 180; t++) {
      sum += (t % 180 ? 2 : 1) * deficit[t] * cosDegrees(k * t);
    }
    const mean = sum / 360;
    if (k === 0) return Math.max(variance - mean, 0);
    return Math.max((k < 180 ? -2 : -1) * mean, 0);
  });
}

// Independent standard normal numbers, the same for the same seed (mulberry32, Box and Muller).
function normals(seed, count) {
  let state = (seed * 2654435761) >>> 0;
  const uniform = () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), state | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return (((t ^ (t >>> 14)) >>> 0) + 0.5) / 4294967296;
  };
  return Array.from({ length: count }, () => {
    const radius = Math.sqrt(-2 * Math.log(uniform()));
    return radius * Math.cos(2 * Math.PI * uniform());
  });
}

// Functions from the prior, as Fourier series with random coefficients. The random numbers do not
// depend on the network, so that functions change smoothly with it.
function priorDraws(powers, seed, count) {
  const z = normals(seed, count * 362);
  return Array.from({ length: count }, (_, draw) => {
    const a = powers.map((power, k) => Math.sqrt(power) * z[draw * 362 + k]);
    const b = powers.map((power, k) => Math.sqrt(power) * z[draw * 362 + 181 + k]);
    return CIRCLE.map((t) => {
      let sum = 0;
      for (let k = 0; k <= 180; k++) sum += a[k] * cosDegrees(k * t) + b[k] * sinDegrees(k * t);
      return sum;
    });
  });
}

// The lower Cholesky factor, or null if the matrix is not positive definite.
function cholesky(A) {
  const L = A.map((row) => row.map(() => 0));
  for (let i = 0; i < A.length; i++) {
    for (let j = 0; j <= i; j++) {
      let sum = A[i][j];
      for (let k = 0; k < j; k++) sum -= L[i][k] * L[j][k];
      if (i === j && !(sum > 0)) return null;
      L[i][j] = i === j ? Math.sqrt(sum) : sum / L[j][j];
    }
  }
  return L;
}

// x with L x = y.
function forward(L, y) {
  const x = [];
  L.forEach((row, i) => {
    let sum = y[i];
    for (let k = 0; k < i; k++) sum -= row[k] * x[k];
    x.push(sum / row[i]);
  });
  return x;
}

// Mean and variance of the function at every degree, given points [degree, value]. As in the
// library the noise is multiplied by ten where the matrix is not positive definite.
function posterior({ variance, one }, points, noise) {
  const k = (s, t) => 1 - one[apart(s, t)]; // in units of K(0)
  let [used, L] = [noise, null];
  while (!L) {
    const extra = used / variance;
    L = cholesky(points.map(([s], i) => points.map(([t], j) => k(s, t) + (i === j ? extra : 0))));
    if (!L) used *= 10;
  }
  const weighted = forward(L, points.map(([, y]) => y));
  const columns = CIRCLE.map((t) => forward(L, points.map(([s]) => k(s, t))));
  const dot = (a, b) => a.reduce((sum, value, i) => sum + value * b[i], 0);
  return {
    noise: used,
    mean: columns.map((column) => dot(column, weighted)),
    variance: columns.map((column) => variance * Math.max(1 - dot(column, column), 0)),
  };
}
