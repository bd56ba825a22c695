// Scoring formulas, the same that are exported as SQL and ONNX: a number for every class, or group, of a row.
//
// A row has a number of classes and answers number(name), NaN where it is missing, and level(name), counted from 1 and
// 0 where it is missing.

const OPERATIONS = {
  add: (a, b) => a + b,
  subtract: (a, b) => a - b,
  multiply: (a, b) => a * b,
  divide: (a, b) => a / b,
  log: Math.log,
  exp: Math.exp,
  largest: Math.max,
};

/**
 * A formula that Python wrote: `value(row, k)` is its number in a class, `columns` are those it is computed from, and
 * `addTerms(row, k, times, add)` says what each of them, or null for none, adds to that number.
 */
const readFormula = (doc) => FORMULAS[doc.is](doc);

const FORMULAS = {
  GroupNumbers(doc) {
    const values = unpacked(doc.values);
    return shared([], (row, k) => values[values.length > 1 ? k : 0]);
  },
  Cell: ({ key }) => shared([key], (row) => row.number(key)),
  Apply(doc) {
    const [apply, parts] = [OPERATIONS[doc.operation], doc.parts.map(readFormula)];
    const found = shared(parts.flatMap((part) => part.columns), (row, k) => apply(...parts.map((part) => part.value(row, k))));
    const [left, right] = parts;
    const both = (sign) => (row, k, times, add) => (left.addTerms(row, k, times, add), right.addTerms(row, k, sign * times, add));
    if (doc.operation === "add") found.addTerms = both(1);
    if (doc.operation === "subtract") found.addTerms = both(-1);
    if (doc.operation === "multiply") found.addTerms = (row, k, times, add) => left.addTerms(row, k, times * right.value(row, k), add);
    return found;
  },
  Choose(doc) {
    const [tests, then, otherwise] = [doc.tests.map(readTest), readFormula(doc.then), readFormula(doc.otherwise)];
    const columns = [...tests, then, otherwise].flatMap((part) => part.columns);
    return shared(columns, (row, k) => (tests.every((test) => test.holds(row, k)) ? then : otherwise).value(row, k));
  },
  LookUp(doc) {
    if (doc.code.is === "WordsCode") return readWords(doc);
    const [code, table] = [readCode(doc.code), unpacked(doc.table)];
    return shared(code.columns, (row, k) => table[code.at(row) * row.classes + k]);
  },
  BlockDensity: readBlockDensity,
  AodeMean: readAodeMean,
};

const WORD_WEIGHTS = { once: () => 1, times: (n) => n, log: (n) => Math.log(1 + n), square: (n) => Math.log(1 + n) ** 2 };

/** The weighted sum of a table over the words of a document; a table of one column serves all classes. */
function readWords({ code: { key, each }, table: packed }) {
  const table = unpacked(packed, true);
  let width = 0;
  function addTerms(row, k, times, add) {
    width ||= table.length / row.vocabulary(key);
    for (const [place, count] of row.words(key)) add(key, k, times * WORD_WEIGHTS[each](count) * table[place * width + (width > 1 ? k : 0)], place);
  }
  return { columns: [key], value: (row, k) => totalOf(addTerms, row, k), addTerms };
}

/** A formula of which all columns have an equal share. */
function shared(columns, value) {
  const own = columns.length ? [...new Set(columns)] : [null];
  const addTerms = (row, k, times, add) => own.forEach((column) => add(column, k, (times * value(row, k)) / own.length));
  return { columns: [...new Set(columns)], value, addTerms };
}

function readTest(doc) {
  if (doc.is === "Missing") return { columns: [doc.key], holds: (row) => row.missing(doc.key) === doc.wanted };
  const [left, right] = [readFormula(doc.left), readFormula(doc.right)];
  const compare = doc.sign === "<" ? (a, b) => a < b : (a, b) => a === b;
  return { columns: [...left.columns, ...right.columns], holds: (row, k) => compare(left.value(row, k), right.value(row, k)) };
}

/** What gives the row of a table to look up in. */
function readCode(doc) {
  if (doc.is === "LevelCode") return { columns: [doc.key], at: (row) => row.level(doc.key) };
  if (doc.is === "IntervalCode") {
    const edges = unpacked(doc.edges);
    const place = (x) => (Number.isNaN(x) ? 0 : 1 + edges.filter((edge) => x >= edge).length);
    return { columns: [doc.key], at: (row) => place(row.number(doc.key)) };
  }
  const codes = doc.codes.map(readCode);
  const inside = (code, size) => (code < size ? code : 0);
  const at = (row) => codes.reduce((whole, code, i) => whole * doc.sizes[i] + inside(code.at(row), doc.sizes[i]), 0);
  return { columns: codes.flatMap((code) => code.columns), at };
}

/** The density of numbers that are normal together, those that are missing integrated out. */
function readBlockDensity(doc) {
  const [mean, covariance, values] = [unpacked(doc.form.mean), unpacked(doc.form.covariance), doc.values.map(readFormula)];
  const d = doc.keys.length;
  function addTerms(row, k, times, add) {
    const there = doc.keys.flatMap((name, i) => (Number.isNaN(row.number(name)) ? [] : [i]));
    const { off, factor, z, top } = normalAt(mean, covariance, d, k, there, there.map((i) => values[i].value(row, k)));
    const turned = backward(factor, z);
    there.forEach((i, a) => add(doc.keys[i], k, -0.5 * times * off[a] * turned[a]));
    add(null, k, times * top);
  }
  return { columns: doc.keys, value: (row, k) => totalOf(addTerms, row, k), addTerms };
}

/**
 * Some of d numbers that are normal together in group k: each as deviations from its mean and, decorrelated, as z. The
 * log-density is `top` less half the sum of the squares of z.
 */
function normalAt(mean, covariance, d, k, places, values) {
  const entry = (i, j) => covariance[(k * d + i) * d + j];
  const unit = places.map((i) => Math.sqrt(entry(i, i)));
  const factor = cholesky(places.map((i, a) => places.map((j, b) => entry(i, j) / unit[a] / unit[b])));
  const off = places.map((i, a) => (values[a] - mean[k * d + i]) / unit[a]);
  const top = -places.reduce((sum, _, a) => sum + Math.log(factor[a][a] * unit[a]) + 0.5 * Math.log(2 * Math.PI), 0);
  return { unit, factor, off, z: forward(factor, off), top };
}

/** AODE. The logarithm of a sum is the mean of its terms' logarithms by their shares of it, and the entropy of these shares. */
function readAodeMean(doc) {
  const [shares, alone, given] = ["shares", "alone", "given"].map((name) => unpacked(doc[name], name === "given"));
  const codes = doc.codes.map(readCode);
  const sizes = doc.terms.columns.map(([column]) => doc.terms.sizes[column]);
  const offsets = sizes.map((_, term) => sizes.slice(0, term).reduce((a, b) => a + b, 1));
  const columns = codes.map((code) => code.columns[0]);
  const width = alone.length / shares.length;
  function addTerms(row, k, times, add) {
    const places = codes.map((code, term) => (code.at(row) > 0 ? offsets[term] + code.at(row) - 1 : 0));
    const there = [...places.keys()].filter((term) => places[term] > 0);
    const pair = (term, parent) => given[(k * width + places[term]) * width + places[parent]];
    add(null, k, times * shares[k]);
    if (!there.length) return;
    const stars = there.map((parent) => alone[k * width + places[parent]] + there.reduce((sum, term) => sum + pair(term, parent), 0));
    const own = sharesOf(stars);
    there.forEach((term, a) => {
      const hung = there.reduce((sum, parent, b) => sum + own[b] * pair(term, parent), 0);
      add(columns[term], k, times * (own[a] * alone[k * width + places[term]] + hung));
      if (own[a] > 0) add(null, k, -times * own[a] * Math.log(own[a]));
    });
    add(null, k, -times * Math.log(there.length));
  }
  return { columns, value: (row, k) => totalOf(addTerms, row, k), addTerms };
}

function totalOf(addTerms, row, k) {
  let total = 0;
  addTerms(row, k, 1, (_, __, x) => (total += x));
  return total;
}

/** The log-density of a number in one group, up to what no group changes. */
function density({ form, least, groups }, x, k) {
  if (x < (least ?? -Infinity)) return -Infinity;
  const found = form.value({ number: () => x, missing: () => Number.isNaN(x), classes: groups }, k);
  return found > IMPOSSIBLE ? found : -Infinity;
}

/** The scores of the classifier's ensemble: by column for its reasons, and as the probability of every class. */
function readEnsemble(doc, variables) {
  const terms = doc.terms.map(readFormula);
  const names = Object.keys(doc.levels);
  const places = new Map(names.map((name) => [name, variables.findIndex((variable) => variable.name === name)]));

  function rowOf(evidence) {
    const given = (name) => evidence[places.get(name)] ?? null;
    const text = (name, e) => (e.cells ? variables[places.get(name)].levels[chosenCells(e)[0]] : String(e.value));
    const counts = new Map();
    function words(name) {
      const e = given(name);
      if (e && !counts.has(name)) counts.set(name, wordCounts(variables[places.get(name)], e.text));
      return e ? counts.get(name) : new Map();
    }
    const number = (name) => (given(name) ? Number("value" in given(name) ? given(name).value : text(name, given(name))) : NaN);
    return {
      classes: doc.classes,
      number,
      level: (name) => (given(name) ? doc.levels[name].indexOf(text(name, given(name))) + 1 : 0),
      missing: (name) => (given(name) && "text" in given(name) ? false : Number.isNaN(number(name))),
      words,
      vocabulary: (name) => variables[places.get(name)].words.length,
    };
  }

  /** What each column adds to the classes' scores, and what none of them does, for a row of single values. */
  function parts(evidence) {
    const row = rowOf(evidence);
    const start = new Float64Array(doc.classes);
    const columns = new Map(names.map((name) => [name, { name, at: places.get(name), scores: new Float64Array(doc.classes) }]));
    const add = (column, k, x) => ((column === null ? start : columns.get(column).scores)[k] += x);
    for (const term of terms) for (let k = 0; k < doc.classes; k++) term.addTerms(row, k, 1, add);
    return { start, columns: [...columns.values()] };
  }

  /** What each word of a document adds for one class against another. */
  function wordOdds(evidence, at, ours, theirs) {
    const row = rowOf(evidence);
    const odds = new Map();
    for (const term of terms)
      for (const [k, sign] of [[ours, 1], [theirs, -1]])
        term.addTerms(row, k, sign, (column, _, x, word) => word !== undefined && places.get(column) === at && odds.set(word, (odds.get(word) ?? 0) + x));
    return odds;
  }

  const logsOf = ({ start, columns }) => start.map((score, k) => columns.reduce((sum, { scores }) => sum + scores[k], score));
  return { parts, wordOdds, predicted: (evidence) => sharesOf(logsOf(parts(evidence))) };
}
