// Probabilities made to mean what they say, as predict gives them: by a temperature, or by a curve for every class.

/** What turns the logarithms of the classes' shares times densities into calibrated probabilities. */
function calibrated(doc) {
  if (doc.temperature) return (logs) => sharesOf(logs.map((log) => log / doc.temperature));
  const curves = doc.curves.map(({ odds, share }) => ({ odds: unpacked(odds), share: unpacked(share) }));
  return (logs) => {
    if (curves.length === 1) {
      const second = onCurve(curves[0], oddsAgainstRest(logs, 1));
      return [1 - second, second];
    }
    return normalised(curves.map((curve, k) => onCurve(curve, oddsAgainstRest(logs, k))));
  };
}

const oddsAgainstRest = (logs, k) => logs[k] - logSum(logs.filter((_, other) => other !== k));

/** Straight between the points of a curve, flat beyond them. */
function onCurve({ odds, share }, x) {
  const last = odds.length - 1;
  if (!(x > odds[0])) return share[0];
  if (x >= odds[last]) return share[last];
  let at = 0;
  while (odds[at + 1] < x) at++;
  return share[at] + ((share[at + 1] - share[at]) * (x - odds[at])) / (odds[at + 1] - odds[at]);
}
