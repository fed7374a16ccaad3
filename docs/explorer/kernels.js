// One layer, and all layers.
//
// For u, v Gaussian of variance q and correlation c, one layer needs F(c) = E[phi(u) phi(v)].
// Split phi into an even and an odd part: F = Fe + Fo, and each part has a deficit
//
//     even(q, m) = Fe(1) - Fe(1 - m),    odd(q, m) = Fo(1) - Fo(1 - m),    0 <= m <= 1.
//
// An activation is these two functions and evenMoment(q) = Fe(1); the odd one is Fo(1) = odd(q, 1),
// as Fo(0) = 0. They are written without subtracting large numbers, so that two inputs which a deep
// network hardly tells apart keep all their digits.

const TWO_OVER_PI = 2 / Math.PI;
const none = () => 0;

// sin t - t cos t, which is t^3/3 - ...: by its series where the difference would lose digits.
function gap(t) {
  if (t > 0.8) return Math.sin(t) - t * Math.cos(t);
  let sum = 0;
  let term = t; // (-1)^k t^(2k+1) / (2k+1)!
  for (let k = 0; k < 12; k++) {
    sum -= 2 * k * term;
    term *= (-t * t) / ((2 * k + 2) * (2 * k + 3));
  }
  return sum;
}

// The angle in [0, pi/2] whose cosine is 1 - m.
const angleOf = (m) => 2 * Math.asin(Math.sqrt(m / 2));

// The deficit of |x| at variance 1.
const absDeficit = (m) => m - TWO_OVER_PI * gap(angleOf(m));

// arcsin(x) - arcsin(x (1 - m)) for x = q / (1 + q).
function arcsinDeficit(q, m) {
  const x = q / (1 + q);
  const cosX = Math.sqrt(1 + 2 * q) / (1 + q);
  const sine2 = m * (2 - m);
  const cosY = Math.sqrt(cosX * cosX + x * x * sine2);
  return Math.atan2(
    (x * sine2) / (cosY + (1 - m) * cosX),
    cosX * cosY + x * x * (1 - m),
  );
}

// a x + b |x|: relu, leaky relu, the absolute value.
function lines(a, b) {
  return {
    evenMoment: (q) => b * b * q,
    odd: (q, m) => a * a * q * m,
    even: (q, m) => b * b * q * absDeficit(m),
    rate: a * a + b * b,
  };
}

const sign = {
  evenMoment: none,
  odd: (q, m) => TWO_OVER_PI * angleOf(m),
  even: none,
  rate: 0,
  jumps: true, // E[phi'^2] is infinite
};

const erf = {
  evenMoment: none,
  odd: (q, m) => TWO_OVER_PI * arcsinDeficit(2 * q, m),
  even: none,
  rate: 0,
};

// x Phi(x) = x/2 + x erf(x / sqrt 2) / 2. Beyond 1e15 rounding exceeds the distance to relu.
const LIKE_RELU = 1e15;
const gelu = {
  evenMoment(q) {
    if (q > LIKE_RELU) return 0.25 * q;
    const root = Math.sqrt(1 + 2 * q);
    return 0.25 * TWO_OVER_PI * q * (Math.atan2(q, root) + (2 * q) / (root * (1 + q)));
  },
  odd: (q, m) => 0.25 * q * m,
  even(q, m) {
    if (q > LIKE_RELU) return 0.25 * q * absDeficit(m);
    const sine2 = m * (2 - m);
    const root1 = Math.sqrt(1 + 2 * q);
    const root = Math.sqrt(1 + 2 * q + q * q * sine2);
    const first = (2 * q * q) / ((1 + q) * root * root1 * (root + root1));
    const rest = sine2 * (first + (1 - q) / ((1 + q) * root));
    const arcs = arcsinDeficit(q, m) + m * Math.atan2(q * (1 - m), root);
    return 0.25 * TWO_OVER_PI * q * (arcs + q * rest);
  },
  rate: 0.5,
};

const sine = {
  evenMoment: none,
  odd: (q, m) => -0.5 * Math.expm1(-q * m) * (1 + Math.exp(-q * (2 - m))),
  even: none,
  rate: 0,
};

const cosine = {
  evenMoment: (q) => 0.5 * (1 + Math.exp(-2 * q)),
  odd: none,
  even: (q, m) => 0.5 * Math.expm1(-q * m) * Math.expm1(-q * (2 - m)),
  rate: 0,
};

// exp(-x^2), whose expectation is the inverse root of a determinant.
const gaussian = {
  evenMoment: (q) => 1 / Math.sqrt(1 + 4 * q),
  odd: none,
  even(q, m) {
    const sine2 = m * (2 - m);
    const root1 = Math.sqrt(1 + 4 * q);
    const root = Math.sqrt(1 + 4 * q + 4 * q * q * sine2);
    return (4 * q * q * sine2) / (root * (root + root1) * root1);
  },
  rate: 0,
};

// Tables, for activations without a closed form. The build wrote them from the library: Chebyshev
// coefficients of deficit / (m size(q)) in x = asinh(sqrt q) / asinh(sqrt Q), which spaces
// variances like their logarithm but reaches zero, and y = asinh(sqrt(m q)) / asinh(sqrt q), which
// resolves the narrow range m q < 1 that a large variance leaves where phi is curved.

// sum of coefs[k] T_k(2 x - 1), by Clenshaw's rule.
function chebyshev(coefs, x) {
  const twice = 4 * x - 2;
  let b1 = 0;
  let b2 = 0;
  for (let k = coefs.length - 1; k > 0; k--) [b1, b2] = [twice * b1 - b2 + coefs[k], b1];
  return 0.5 * twice * b1 - b2 + coefs[0];
}

// The growth with q that was divided out before the fit, by name.
const SIZES = {
  line: (q) => q,
  parabola: (q) => (q / (1 + q)) * q, // phi starts like x^2 and ends like |x|
};

// A function of x alone.
function column(table, coefs, size) {
  const scale = Math.asinh(Math.sqrt(table.to));
  return (q) => {
    const inside = Math.min(q, table.to);
    const value = chebyshev(coefs, Math.asinh(Math.sqrt(inside)) / scale);
    return size(q) * beyond(table, q, value, 0.25);
  };
}

// Past the end of the table its distance from the limit falls like a power of q.
function beyond(table, q, value, limit) {
  return q > table.to ? limit + (value - limit) * (table.to / q) ** table.power : value;
}

// A deficit; the sum over x is kept for the next m, as all pairs of a layer share q.
function deficitTable(table, limit) {
  const scale = Math.asinh(Math.sqrt(table.to));
  const size = SIZES[table.size];
  let known = NaN;
  let row = [];
  return (q, m) => {
    const inside = Math.min(q, table.to);
    if (inside !== known) {
      const x = Math.asinh(Math.sqrt(inside)) / scale;
      row = table.coefs.map((coefs) => chebyshev(coefs, x));
      known = inside;
    }
    const root = Math.sqrt(inside);
    const s = Math.sqrt(m);
    const y = root < 1e-7 ? s : Math.asinh(s * root) / Math.asinh(root);
    return m * size(q) * beyond(table, q, chebyshev(row, y), limit(m));
  };
}

// (1/4) |x| and (1/4) x^2, to which even and odd parts tend.
const evenLimit = (m) => (m > 0 ? (0.25 * absDeficit(m)) / m : 0.25);
const oddLimit = () => 0.25;

function tabulated(tables) {
  const tanhOdd = deficitTable(tables.tanh, none);
  const eluOdd = deficitTable(tables.elu_odd, oddLimit);
  const evenPart = (name) => ({
    even: deficitTable(tables[name], evenLimit),
    moment: column(tables[name], tables[name].second, SIZES[tables[name].second_size]),
  });
  const [silu, softplus, elu] = ["silu_even", "softplus_even", "elu_even"].map(evenPart);
  // silu and softplus are x/2 plus an even function
  const half = (q, m) => 0.25 * q * m;
  const withHalf = ({ even, moment }) => ({
    evenMoment: moment,
    odd: half,
    even,
    rate: 0.5,
    rough: true,
  });
  // E[(g + a)^2] from E[g^2] and the mean of g, whose square is Fe(0)
  const raised = ({ even, moment }, a) => ({
    even,
    moment(q) {
      const mean = Math.sqrt(Math.max(moment(q) - even(q, 1), 0));
      return moment(q) + 2 * a * mean + a * a;
    },
  });
  return {
    tanh: { evenMoment: none, odd: tanhOdd, even: none, rate: 0, rough: true },
    // 1/2 + tanh(x/2)/2
    sigmoid: {
      evenMoment: () => 0.25,
      odd: (q, m) => 0.25 * tanhOdd(q / 4, m),
      even: none,
      rate: 0,
      rough: true,
    },
    silu: withHalf(silu),
    softplus: withHalf(raised(softplus, Math.log(2))),
    elu: {
      evenMoment: elu.moment,
      odd: eluOdd,
      even: elu.even,
      rate: 0.5,
      rough: true,
    },
  };
}

// Coefficients are written as whole multiples of a unit.
function decoded(tables) {
  const scaled = (coefs, unit) => coefs.map((c) => c * unit);
  const decode = (table) => ({
    ...table,
    coefs: table.coefs.map((row) => scaled(row, table.unit)),
    second: scaled(table.second ?? [], table.unit),
  });
  return Object.fromEntries(Object.entries(tables).map(([name, t]) => [name, decode(t)]));
}

// Names are those of the library. `rate` is the limit of E[phi^2]/q; `rough` says that values come
// from a table, whose relative error is about 1e-10.
function activations(tables) {
  const numeric = tabulated(decoded(tables));
  return {
    relu: lines(0.5, 0.5),
    tanh: numeric.tanh,
    erf,
    gelu,
    silu: numeric.silu,
    elu: numeric.elu,
    softplus: numeric.softplus,
    sigmoid: numeric.sigmoid,
    sin: sine,
    cos: cosine,
    gaussian,
    abs: lines(0, 1),
    leaky_relu: lines(0.505, 0.495),
    sign,
  };
}

// E[phi^2].
const secondMoment = (phi, q) => phi.evenMoment(q) + phi.odd(q, 1);

// The recursion of the paper's eq. 5 for inputs of unit variance at angles whose 1 - cos is
// `ones`: the state of layers 0 .. depth. What is carried is not K but the deficit K(1) - K(c).
function propagate(phi, depth, weight, bias, ones) {
  const layers = [firstLayer(weight, bias, ones)];
  for (let l = 1; l <= depth; l++) layers.push(nextLayer(phi, weight, bias, layers[l - 1]));
  return layers;
}

function firstLayer(weight, bias, ones) {
  return layerOf(bias, weight, ones.map((e) => weight * e), ones.map((e) => weight * (2 - e)));
}

// A correlation is known as its sign and m = 1 - |c|.
function nextLayer(phi, weight, bias, { variance, negative, m }) {
  const evenMoment = phi.evenMoment(variance);
  const oddMoment = phi.odd(variance, 1);
  const deficit = new Array(m.length);
  const total = new Array(m.length); // F(1) + F(c), which is small near c = -1 if phi is odd
  for (let i = 0; i < m.length; i++) {
    const even = phi.even(variance, m[i]);
    const odd = phi.odd(variance, m[i]);
    const far = 2 * oddMoment - odd;
    deficit[i] = weight * (even + (negative[i] ? far : odd));
    total[i] = weight * (2 * evenMoment - even + (negative[i] ? odd : far));
  }
  return layerOf(bias, weight * (evenMoment + oddMoment), deficit, total);
}

// The state from weight_var times F(1), F(1) - F(c) and F(1) + F(c); `one` is 1 - c.
function layerOf(bias, moment, deficit, total) {
  const variance = bias + moment;
  const one = deficit.map((d) => d / variance);
  const negative = one.map((e) => e > 1);
  const m = one.map((e, i) => Math.min(negative[i] ? (2 * bias + total[i]) / variance : e, 1));
  return { variance, deficit, one, negative, m };
}

// F(1) - F(1 - e) for 0 <= e <= 2.
function deficitAt(phi, q, e) {
  if (e <= 1) return phi.even(q, e) + phi.odd(q, e);
  return phi.even(q, 2 - e) + 2 * phi.odd(q, 1) - phi.odd(q, 2 - e);
}
