// A model whose columns depend on each other through the class: all answers are sums over the classes.
//
// Evidence is an array by variable, the class being variable 0: null, or {cells} (a 1 for each level or bar that it may
// be), or {value} (an exact number), or {text}.

function starEngine(doc) {
  const start = unpacked(doc.start);
  const K = start.length;
  const columns = doc.columns.map((column) => readColumn(column, K));
  const blocks = doc.blocks.map((block) => readBlock(block, columns, K));
  const own = new Array(columns.length).fill(null);
  for (const block of blocks) for (const at of block.columns) own[at] = block;
  const target = { name: doc.target.name, kind: "levels", levels: doc.target.levels, python: doc.target.python };
  target.size = K;
  const parts = [
    ...columns.map((column, at) => (own[at] ? null : singlePart(column, at, K))).filter(Boolean),
    ...blocks.map((block) => (block.kind === "joint" ? jointPart(block, columns, K) : normalPart(block, columns, K))),
  ];

  /** What each class says of the evidence, part by part, weighed; the class itself rules classes out. */
  function partLogs(evidence, which = parts) {
    return which.map((part) => {
      const logs = part.given(evidence) ? part.logs(evidence) : null;
      return logs && logs.map((log) => (part.weight === 1 ? log : part.weight * log));
    });
  }

  function joint(evidence, found) {
    const logs = Float64Array.from(start);
    const chosen = evidence[0];
    for (let k = 0; k < K; k++) {
      for (const own of found) if (own) logs[k] += own[k];
      if (Number.isNaN(logs[k]) || (chosen && !chosen.cells[k])) logs[k] = -Infinity;
    }
    return logs;
  }

  function answer(evidence) {
    const logs = joint(evidence, partLogs(evidence));
    const weights = sharesOf(logs);
    if (!weights) return { possible: false };
    const shares = new Array(columns.length + 1);
    shares[0] = weights;
    for (const part of parts)
      for (const at of part.columns) if (columns[at].kind !== "text") shares[at + 1] = mixed(weights, part.within(at, evidence));
    return { possible: true, shares, logs, weights };
  }

  const ensemble = doc.ensemble && readEnsemble(doc.ensemble, [target, ...columns]);
  const calibrate = doc.calibration && calibrated(doc.calibration);

  /** The probability of each class as `predict` has it; of a set or range the average over its values. */
  function predicted(evidence) {
    const logs = joint(evidence, partLogs(evidence));
    if (logSum(logs) === -Infinity) return null;
    let found = null;
    if (ensemble) {
      found = new Float64Array(K);
      for (const { row, weight } of singleRows(evidence)) ensemble.predicted(row).forEach((share, k) => (found[k] += weight * share));
    } else found = calibrate(Array.from(logs));
    return evidence[0] ? normalised(found.map((share, k) => (evidence[0].cells[k] ? share : 0))) : found;
  }

  /** Rows of single values that stand for sets and ranges, and the share of each by the model of all columns. */
  function singleRows(evidence) {
    const open = evidence.flatMap((e, at) => {
      if (!at || !e || !e.cells) return [];
      const { hidden, size, kind } = columns[at - 1];
      const chosen = chosenCells(e).filter((cell) => !hidden || (cell > 0 && cell < size - 1));
      return chosen.length > 1 || kind === "number" ? [{ at, chosen }] : [];
    });
    const one = (at, cell) => (columns[at - 1].kind === "number" ? { value: middleOf(columns[at - 1], cell) } : cellsOf(columns[at - 1].size, [cell]));
    const free = evidence.map((e, at) => (at ? e : null));
    const count = open.reduce((product, { chosen }) => product * chosen.length, 1);
    if (count <= MOST_ROWS) {
      let rows = [free];
      let narrowed = [free];
      for (const { at, chosen } of open) {
        rows = rows.flatMap((row) => chosen.map((cell) => row.with(at, one(at, cell))));
        narrowed = narrowed.flatMap((row) => chosen.map((cell) => row.with(at, cellsOf(columns[at - 1].size, [cell]) ?? row[at])));
      }
      const shares = rows.length > 1 ? sharesOf(narrowed.map((row) => logSum(joint(row, partLogs(row))))) : [1];
      return rows.map((row, place) => ({ row, weight: shares[place] }));
    }
    const { shares } = answer(free);
    let seed = 1;
    const draw = ({ at, chosen }) => {
      seed = (seed * 16807) % 2147483647;
      let left = (seed / 2147483647) * chosen.reduce((sum, cell) => sum + shares[at][cell], 0);
      return chosen.find((cell) => (left -= shares[at][cell]) <= 0) ?? chosen[0];
    };
    const drawn = () => open.reduce((row, set) => row.with(set.at, one(set.at, draw(set))), free);
    return Array.from({ length: MOST_ROWS }, () => ({ row: drawn(), weight: 1 / MOST_ROWS }));
  }

  /** The probability of all that is given but exact numbers and documents; null where columns were given weights. */
  function logEvidence(evidence) {
    if (!doc.dense) return null;
    const sets = evidence.map((e) => (e && e.cells ? e : null));
    return logSum(joint(sets, partLogs(sets))) - logSum(start);
  }

  /**
   * What every column adds to the log-odds of the likeliest class against another, as `predict` scores them where it
   * can; `logs` are those of the probabilities that are shown.
   */
  function waterfall(evidence, against = null, asked = 0, logs = null) {
    if (ensemble) {
      const rows = singleRows(evidence).map(({ row, weight }) => ({ ...ensemble.parts(row), weight }));
      const average = (scoresOf) => rows[0].start.map((_, k) => rows.reduce((sum, row) => sum + row.weight * scoresOf(row)[k], 0));
      const contributions = rows[0].columns.map(({ name, at }, place) => ({ name, at, scores: average((row) => row.columns[place].scores) }));
      return stepsOf(average((row) => row.start), contributions.filter(({ at, scores }) => evidence[at] || scores.some((x) => x !== scores[0])), against, logs);
    }
    const found = partLogs(evidence);
    const contributions = parts.flatMap((part, place) => found[place] ? [{ name: part.columns.map((at) => columns[at].name).join(", "), scores: found[place], at: part.columns[0] + 1 }] : []);
    return stepsOf(start, contributions, against, logs ?? joint(evidence, found));
  }

  /** In bits, how much every column that is not given would tell of the class on average. */
  function information(evidence) {
    const { weights } = answer(evidence);
    const found = [];
    for (const part of parts)
      for (const at of part.columns)
        if (!evidence[at + 1] && columns[at].kind !== "text")
          found.push({ at: at + 1, bits: bitsOf(weights, part.within(at, evidence)) });
    return found;
  }

  /** The likeliest row: of all classes, the one whose best levels and bars together are likeliest. */
  function likeliest(evidence) {
    const found = partLogs(evidence);
    const free = parts.filter((part, place) => !found[place] || part.open(evidence));
    const sure = joint(evidence, found.map((own, place) => (free.includes(parts[place]) ? null : own)));
    let best = null;
    for (let k = 0; k < K; k++) {
      const tops = free.map((part) => part.top(k, evidence));
      const log = tops.reduce((sum, top) => sum + top.log, sure[k]);
      if (log > -Infinity && (!best || log > best.log)) best = { k, log, tops };
    }
    if (!best) return null;
    const levels = new Map([[0, best.k]]);
    for (const top of best.tops) for (const [at, cell] of top.cells) levels.set(at + 1, cell);
    return levels;
  }

  return {
    variables: [target, ...columns],
    asked: 0,
    answer,
    logEvidence,
    waterfall,
    information,
    likeliest,
    possible: (evidence) => answer(evidence).possible,
    wordOdds: (at, evidence, ours, theirs) => wordOdds(columns[at - 1], evidence[at].text, ours, theirs, K, ensemble && ensemble.wordOdds(evidence, at, ours, theirs)),
    predicted: ensemble || calibrate ? predicted : null,
    difference: ensemble ? "average over sets and ranges" : "calibration",
    reasons: "columns",
  };
}

function readColumn(column, K) {
  const found = { ...column, weight: column.weight ?? 1, groups: K };
  found.logs = unpacked(column.logs, column.kind === "text");
  if (column.kind === "text") {
    found.places = new Map(column.words.map((word, place) => [word, place]));
    found.start = unpacked(column.start);
    found.size = 0;
    return found;
  }
  found.size = found.logs.length / K;
  found.probability = column.inside ? unpacked(column.inside) : found.logs.map(Math.exp);
  found.form = column.form && readFormula(column.form);
  return found;
}

function readBlock(block, columns, K) {
  const found = { ...block, weight: columns[block.columns[0]].weight };
  for (const name of ["logs", "means", "covariances"]) if (block[name]) found[name] = unpacked(block[name]);
  if (block.kind === "normal") for (const at of block.columns) columns[at].exact = true;
  return found;
}

/** (groups x cells) mixed by the groups' weights. */
function mixed(weights, within) {
  const size = within.length / weights.length;
  const found = new Float64Array(size);
  for (let k = 0; k < weights.length; k++)
    if (weights[k] > 0) for (let c = 0; c < size; c++) found[c] += weights[k] * within[k * size + c];
  return found;
}

/** Mutual information of the groups and the cells, in bits. */
function bitsOf(weights, within) {
  const whole = mixed(weights, within);
  const size = whole.length;
  let bits = 0;
  for (let k = 0; k < weights.length; k++)
    for (let c = 0; c < size; c++) {
      const share = within[k * size + c];
      if (weights[k] > 0 && share > 0) bits += weights[k] * share * Math.log2(share / whole[c]);
    }
  return Math.max(bits, 0);
}

/** The log-odds of the best class against another, step by step from a start; the best by their sum, unless `logs` are given. */
function stepsOf(start, contributions, against, logs = null) {
  const whole = logs ?? start.map((score, k) => contributions.reduce((sum, { scores }) => sum + scores[k], score));
  const [ours, runnerUp] = bestTwo(whole);
  const theirs = against === null || against === ours ? runnerUp : against;
  if (theirs === null) return null;
  const less = (own) => (own[ours] === own[theirs] ? 0 : own[ours] - own[theirs]);
  const steps = [{ name: null, odds: less(start) }, ...contributions.map(({ name, scores, at }) => ({ name, odds: less(scores), at }))];
  return { ours, theirs, steps, total: steps.reduce((sum, step) => sum + step.odds, 0) };
}

/** The places of the largest number and of the next; null for the second where there is one number. */
function bestTwo(logs) {
  let first = 0;
  for (let k = 1; k < logs.length; k++) if (logs[k] > logs[first]) first = k;
  let second = null;
  for (let k = 0; k < logs.length; k++) if (k !== first && (second === null || logs[k] > logs[second])) second = k;
  return [first, second];
}

/** All of a column on the bar that holds a number. */
function onBar(column, value, K) {
  const found = new Float64Array(K * column.size);
  const bar = barOf(column.edges, value);
  for (let k = 0; k < K; k++) found[k * column.size + bar] = 1;
  return found;
}

const MOST_ROWS = 128; // rows that stand for sets and ranges; of more, as many are drawn
const LEAST_INSIDE = 1e-3; // share of each normal within the bounds of its column, from which on all are truncated

// -- parts: a column by itself, or a block of columns that depend on each other within the classes

function singlePart(column, at, K) {
  const m = column.size;
  const given = (evidence) => evidence[at + 1];
  function logs(evidence) {
    const e = given(evidence);
    const found = new Float64Array(K);
    if (column.kind === "text") {
      found.set(column.start);
      for (const [place, count] of wordCounts(column, e.text))
        for (let k = 0; k < K; k++) found[k] += count * column.logs[place * K + k];
      return found;
    }
    const bar = "value" in e && !column.form ? barOf(column.edges, e.value) : null;
    for (let k = 0; k < K; k++) {
      if (bar !== null) found[k] = column.logs[k * m + bar];
      else if ("value" in e) found[k] = density(column, e.value, k);
      else found[k] = logSum(column.logs.subarray(k * m, (k + 1) * m).filter((_, c) => e.cells[c]));
    }
    return found;
  }
  function within(_, evidence) {
    const e = given(evidence);
    if (!e) return column.probability;
    if ("value" in e) return onBar(column, e.value, K);
    const all = logs(evidence);
    const found = new Float64Array(K * m);
    for (let i = 0; i < found.length; i++) {
      const k = Math.floor(i / m);
      if (e.cells[i % m] && all[k] > -Infinity) found[i] = Math.exp(column.logs[i] - all[k]);
    }
    return found;
  }
  function top(k, evidence) {
    if (column.kind === "text") return { log: 0, cells: [] };
    const e = given(evidence);
    let best = null;
    for (let c = 0; c < m; c++)
      if ((!e || e.cells[c]) && (best === null || column.logs[k * m + c] > column.logs[k * m + best])) best = c;
    return { log: column.weight * column.logs[k * m + best], cells: [[at, best]] };
  }
  const open = (evidence) => given(evidence).cells && given(evidence).cells.reduce((a, b) => a + b) > 1;
  return { columns: [at], weight: column.weight, given, logs, within, top, open };
}

/** Levels of several columns together: a table of all combinations in every class. */
function jointPart(block, columns, K) {
  const sizes = block.columns.map((at) => columns[at].size);
  const cells = sizes.reduce((a, b) => a * b, 1);
  const strides = sizes.map((_, i) => sizes.slice(i + 1).reduce((a, b) => a * b, 1));
  const levelOf = (cell, i) => Math.floor(cell / strides[i]) % sizes[i];
  const allowed = (cell, evidence) =>
    block.columns.every((at, i) => !evidence[at + 1] || evidence[at + 1].cells[levelOf(cell, i)]);
  const given = (evidence) => block.columns.some((at) => evidence[at + 1]);
  function logs(evidence) {
    const found = new Float64Array(K);
    for (let k = 0; k < K; k++)
      found[k] = logSum(block.logs.subarray(k * cells, (k + 1) * cells).filter((_, cell) => allowed(cell, evidence)));
    return found;
  }
  function within(at, evidence) {
    const i = block.columns.indexOf(at);
    const all = logs(evidence);
    const found = new Float64Array(K * sizes[i]);
    for (let k = 0; k < K; k++)
      for (let cell = 0; cell < cells; cell++)
        if (all[k] > -Infinity && allowed(cell, evidence))
          found[k * sizes[i] + levelOf(cell, i)] += Math.exp(block.logs[k * cells + cell] - all[k]);
    return found;
  }
  function top(k, evidence) {
    let best = null;
    for (let cell = 0; cell < cells; cell++)
      if (allowed(cell, evidence) && (best === null || block.logs[k * cells + cell] > block.logs[k * cells + best])) best = cell;
    return { log: block.weight * block.logs[k * cells + best], cells: block.columns.map((at, i) => [at, levelOf(best, i)]) };
  }
  return { columns: block.columns, weight: block.weight, given, logs, within, top, open: () => true };
}

/** Numbers that are normal together in every class: what is given of them are exact numbers. */
function normalPart(block, columns, K) {
  const d = block.columns.length;
  const given = (evidence) => block.columns.some((at) => evidence[at + 1]);
  const covariance = (k, i, j) => block.covariances[(k * d + i) * d + j];
  function conditioned(evidence, k) {
    const seen = [...Array(d).keys()].filter((i) => evidence[block.columns[i] + 1]);
    const values = seen.map((i) => evidence[block.columns[i] + 1].value);
    const { unit, factor, z, top } = normalAt(block.means, block.covariances, d, k, seen, values);
    const square = 0.5 * z.reduce((sum, x) => sum + x * x, 0);
    /** Mean and variance of a number that is not given. */
    function of(i) {
      const along = forward(factor, seen.map((j, a) => covariance(k, i, j) / unit[a]));
      const gain = along.reduce((sum, x, a) => sum + x * z[a], 0);
      const less = along.reduce((sum, x) => sum + x * x, 0);
      return [block.means[k * d + i] + gain, covariance(k, i, i) - less];
    }
    return { log: top - square, square, of };
  }
  const logs = (evidence) => Float64Array.from({ length: K }, (_, k) => conditioned(evidence, k).log);
  function within(at, evidence) {
    const column = columns[at];
    if (evidence[at + 1]) return onBar(column, evidence[at + 1].value, K);
    const found = new Float64Array(K * column.size);
    const [low, high] = column.bounds ?? [null, null];
    const groups = Array.from({ length: K }, (_, k) => {
      const [mean, variance] = conditioned(evidence, k).of(block.columns.indexOf(at));
      const standard = (x) => (x - mean) / Math.sqrt(variance);
      const ends = [low === null ? -Infinity : standard(low), high === null ? Infinity : standard(high)];
      return { edges: column.edges.map(standard), ends, share: normalBetween(...ends) };
    });
    const truncated = groups.every(({ share }) => share > LEAST_INSIDE);
    groups.forEach(({ edges, ends, share }, k) => {
      const [first, last, whole] = truncated ? [...ends, share] : [-Infinity, Infinity, 1];
      const z = [first, ...edges.map((x) => Math.min(Math.max(x, first), last)), last];
      for (let c = 0; c < column.size; c++) found[k * column.size + c] = normalBetween(z[c], z[c + 1]) / whole;
    });
    return found;
  }
  function top(k, evidence) {
    const whole = conditioned(evidence, k);
    const means = block.means.subarray(k * d, (k + 1) * d);
    const height = normalAt(block.means, block.covariances, d, k, [...Array(d).keys()], means).top;
    const cells = block.columns.map((at, i) => {
      const value = evidence[at + 1] ? evidence[at + 1].value : whole.of(i)[0];
      return [at, barOf(columns[at].edges, value)];
    });
    // The density of the likeliest row: that of the whole block at its top, less what the given numbers are off it.
    return { log: block.weight * (height - whole.square), cells };
  }
  return { columns: block.columns, weight: block.weight, given, logs, within, top, open: () => true };
}

function cholesky(matrix) {
  const found = matrix.map((row) => row.map(() => 0));
  for (let i = 0; i < matrix.length; i++)
    for (let j = 0; j <= i; j++) {
      let rest = matrix[i][j];
      for (let l = 0; l < j; l++) rest -= found[i][l] * found[j][l];
      found[i][j] = i === j ? Math.sqrt(rest) : rest / found[j][j];
    }
  return found;
}

function forward(factor, right) {
  const found = [];
  for (let i = 0; i < right.length; i++) {
    let rest = right[i];
    for (let j = 0; j < i; j++) rest -= factor[i][j] * found[j];
    found.push(rest / factor[i][i]);
  }
  return found;
}

/** The solution for the transposed factor. */
function backward(factor, right) {
  const found = Array.from(right);
  for (let i = right.length - 1; i >= 0; i--) {
    for (let j = i + 1; j < right.length; j++) found[i] -= factor[j][i] * found[j];
    found[i] /= factor[i][i];
  }
  return found;
}

/** What each word of a document adds for one class against another, the strongest first; by the ensemble if it has words. */
function wordOdds(column, text, ours, theirs, K, known) {
  const found = [];
  const own = (place, count) => column.weight * count * (column.logs[place * K + ours] - column.logs[place * K + theirs]);
  for (const [place, count] of wordCounts(column, text))
    found.push({ word: column.words[place], count, odds: known ? (known.get(place) ?? 0) : own(place, count) });
  return found.sort((a, b) => Math.abs(b.odds) - Math.abs(a.odds));
}
