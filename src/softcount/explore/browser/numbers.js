// Numbers of the document, sums of logarithms, and the normal distribution.

const IMPOSSIBLE = -1e199; // a log-density below this stands for probability zero

/** The numbers that Python packed: eight bytes each, or four. */
function unpacked(text, narrow) {
  const bytes = Uint8Array.from(atob(text), (char) => char.charCodeAt(0));
  return narrow ? Float64Array.from(new Float32Array(bytes.buffer)) : new Float64Array(bytes.buffer);
}

/** The logarithm of a sum, from logarithms; -Infinity where nothing is added. */
function logSum(logs) {
  let top = -Infinity;
  for (const log of logs) if (log > top) top = log;
  if (top === -Infinity) return top;
  let total = 0;
  for (const log of logs) total += Math.exp(log - top);
  return top + Math.log(total);
}

/** Shares that add up to one, from logarithms; null where all of them are impossible. */
function sharesOf(logs) {
  const whole = logSum(logs);
  return whole === -Infinity ? null : logs.map((log) => Math.exp(log - whole));
}

/** The share of a normal distribution below z, or above it: good to the last digits in both tails. */
function normalShare(z, above) {
  if (above) z = -z;
  if (z === Infinity) return 1;
  if (z === -Infinity) return 0;
  const height = Math.exp(-0.5 * z * z) / Math.sqrt(2 * Math.PI);
  if (Math.abs(z) < 5) {
    let term = z;
    let sum = z;
    for (let odd = 3; Math.abs(term) > 1e-18 * Math.abs(sum) && odd < 400; odd += 2) {
      term *= (z * z) / odd;
      sum += term;
    }
    return 0.5 + height * sum;
  }
  const far = Math.abs(z);
  let fraction = far;
  for (let place = 60; place > 0; place--) fraction = far + place / fraction;
  return z < 0 ? height / fraction : 1 - height / fraction;
}

/** The share of a normal distribution between two deviations; in the upper tail the small shares are subtracted. */
function normalBetween(low, high) {
  return low > 0
    ? normalShare(low, true) - normalShare(high, true)
    : normalShare(high, false) - normalShare(low, false);
}

/** The bar that holds a number: a bar has its upper edge and not its lower one. */
function barOf(edges, x) {
  let bar = 0;
  while (bar < edges.length && x > edges[bar]) bar++;
  return bar;
}
