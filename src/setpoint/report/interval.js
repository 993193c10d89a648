// The exact (Clopper-Pearson) 95 % interval of k among n: quantiles of two beta distributions.

function logGamma(z) {
  const terms = [
    0.99999999999980993, 676.5203681218851, -1259.1392167224028, 771.32342877765313, -176.61502916214059,
    12.507343278686905, -0.13857109526572012, 9.9843695780195716e-6, 1.5056327351493116e-7,
  ];
  let sum = terms[0];
  for (let i = 1; i < terms.length; i++) sum += terms[i] / (z - 1 + i);
  const t = z + 6.5;
  return 0.5 * Math.log(2 * Math.PI) + (z - 0.5) * Math.log(t) - t + Math.log(sum);
}

// The share of a beta(a, b) distribution that lies below x, by its continued fraction (Lentz).
function betaBelow(x, a, b) {
  if (x <= 0) return 0;
  if (x >= 1) return 1;
  if (x > (a + 1) / (a + b + 2)) return 1 - betaBelow(1 - x, b, a);
  const front = Math.exp(
    logGamma(a + b) - logGamma(a) - logGamma(b) + a * Math.log(x) + b * Math.log1p(-x)) / a;
  const away = (v) => (Math.abs(v) < 1e-300 ? 1e-300 : v);
  let c = 1, d = 1 / away(1 - (a + b) * x / (a + 1)), fraction = d;
  for (let m = 1; m < 100000; m++) {
    const even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
    d = 1 / away(1 + even * d);
    c = away(1 + even / c);
    fraction *= d * c;
    const odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
    d = 1 / away(1 + odd * d);
    c = away(1 + odd / c);
    fraction *= d * c;
    if (Math.abs(d * c - 1) < 1e-14) break;
  }
  return front * fraction;
}

function betaQuantile(p, a, b, low, high) {
  while (high - low > 1e-11) {
    const middle = (low + high) / 2;
    if (betaBelow(middle, a, b) < p) low = middle; else high = middle;
  }
  return (low + high) / 2;
}

function clopperPearson(k, n) {
  if (n === 0) return [0, 1];
  return [
    k > 0 ? betaQuantile(0.025, k, n - k + 1, 0, k / n) : 0,
    k < n ? betaQuantile(0.975, k + 1, n - k, k / n, 1) : 1,
  ];
}
