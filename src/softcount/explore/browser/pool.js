// What a classifier learned beside naive Bayes: members that score a row, each times its weight, added up.

const FARTHEST = 6; // deviations beyond which a number says no more

function readPool(doc, variables) {
  const weights = unpacked(doc.weights);
  const bias = unpacked(doc.bias);
  const K = bias.length;
  const members = doc.members.map((member) => MEMBERS[member.kind](member, K));
  const sparse = doc.sparse && MEMBERS[doc.sparse.kind](doc.sparse, K);
  const places = doc.columns.map((name) => variables.findIndex((variable) => variable.name === name));

  /** The row as numbers (NaN where missing) and codes (0 where nothing is known). */
  function encoded(evidence) {
    const numbers = new Float64Array(doc.numbers).fill(NaN);
    const codes = new Int32Array(doc.columns.length - doc.numbers);
    places.forEach((place, column) => {
      const e = place < 0 ? null : evidence[place];
      if (!e) return;
      const name = e.cells ? variables[place].levels[chosenCells(e)[0]] : String(e.value);
      if (column < doc.measured) numbers[column] = e.value;
      else if (column < doc.numbers) numbers[column] = Number(name);
      else codes[column - doc.numbers] = doc.levels[column].indexOf(name) + 1;
    });
    return { numbers, codes };
  }

  /** The share of the ensemble in the scores of a row, by the columns that it holds. */
  const givenShare = ({ numbers, codes }) =>
    Math.min(1, doc.presence.reduce((sum, own, c) => sum + ((c < doc.numbers ? !Number.isNaN(numbers[c]) : codes[c - doc.numbers] > 0) ? own : 0), 0));

  /** What each column adds to the classes' scores, by variable, and what none of them does; null where something given is not one value. */
  function parts(evidence, asked) {
    if (!singleCells(variables, evidence, asked)) return null;
    const row = encoded(evidence);
    const share = sparse ? givenShare(row) : 1;
    const found = { start: bias.map((x) => share * x), columns: places.map((at, column) => ({ name: doc.columns[column], at, scores: new Float64Array(K) })) };
    const score = (member, weight) =>
      member(row, (column, k, x) => ((column === null ? found.start : found.columns[column].scores)[k] += weight * x));
    members.forEach((member, place) => score(member, share * weights[place]));
    if (share < 1) score(sparse, 1 - share);
    return found;
  }

  /** The probability of each class, as predict has it; null as above. */
  function predicted(evidence, asked) {
    const found = parts(evidence, asked);
    return found && sharesOf(found.start.map((score, k) => found.columns.reduce((sum, { scores }) => sum + scores[k], score)));
  }
  return { parts, predicted };
}

/** The code of every column, from 1: numbers by their interval, levels as they are; 0 where nothing is known. */
const cutCodes = (cuts, { numbers, codes }) => [
  ...cuts.edges.map((edges, column) => (Number.isNaN(numbers[column]) ? 0 : barOf(edges, numbers[column]) + 1)),
  ...codes,
];

/** The row of the tables, laid end to end, that every term points at; row 0 where nothing is known. */
function termPlaces({ columns, sizes }, codes) {
  let offset = 1;
  return columns.map(([first, second]) => {
    const start = offset;
    offset += sizes[first] * (second === undefined ? 1 : sizes[second]);
    if (second === undefined) return codes[first] > 0 ? codes[first] - 1 + start : 0;
    return codes[first] > 0 && codes[second] > 0 ? (codes[first] - 1) * sizes[second] + codes[second] - 1 + start : 0;
  });
}

const LARGEST = 1e6; // deviations from the mean, as in NumberScale
const logged = (floor, x) => (floor === 0 ? x : Math.sign(floor) * Math.log(Math.max(Math.sign(floor) * x, Math.abs(floor))));
const standardised = ({ floor, middle, spread }, column, x) =>
  Math.max(-LARGEST, Math.min(LARGEST, (logged(floor[column], x) - middle[column]) / spread[column]));

// Each member tells `add` what a column, or null for none of them, adds to the score of a class.
const MEMBERS = {
  additive(member, K) {
    const coefficients = unpacked(member.coefficients);
    const first = K === 2 ? 1 : 0; // of two classes there are coefficients of the second alone
    const width = K - first;
    return (row, add) => {
      const tell = (columns, place, times) => {
        for (const column of columns)
          for (let k = first; k < K; k++) add(column, k, (times * coefficients[place * width + k - first]) / columns.length);
      };
      tell([null], 0, 1);
      termPlaces(member.terms, cutCodes(member.cuts, row)).forEach((place, term) => tell(member.terms.columns[term], 1 + place, 1));
      for (let column = 0; column < member.lines; column++) {
        const z = standardised(member.scale, column, row.numbers[column]);
        if (!Number.isNaN(z)) tell([column], 1 + member.terms.width + column, Math.min(Math.max(z, -FARTHEST), FARTHEST));
      }
    };
  },

  block(member, K) {
    const [means, spread, tables, shares] = ["means", "spread", "tables", "shares"].map((name) => unpacked(member[name]));
    const d = member.columns.length;
    function separate(there, off, k, add) {
      there.forEach((i, a) => add(member.columns[i], k, -0.5 * (off[a] ** 2 / spread[k * d + i] + Math.log(spread[k * d + i]))));
    }
    function joined(there, off, k, add) {
      const factor = cholesky(there.map((i) => there.map((j) => spread[(k * d + i) * d + j])));
      const turned = backward(factor, forward(factor, off));
      there.forEach((i, a) => add(member.columns[i], k, -0.5 * off[a] * turned[a]));
      add(null, k, -factor.reduce((sum, line, a) => sum + Math.log(line[a]), 0));
    }
    return (row, add) => {
      const places = termPlaces(member.terms, cutCodes(member.cuts, row));
      const there = [...Array(d).keys()].filter((i) => !Number.isNaN(row.numbers[member.columns[i]]));
      for (let k = 0; k < K; k++) {
        const off = there.map((i) => standardised(member.scale, i, row.numbers[member.columns[i]]) - means[k * d + i]);
        (member.joined ? joined : separate)(there, off, k, add);
        places.forEach((place, term) => add(member.terms.columns[term][0], k, tables[place * K + k]));
        add(null, k, shares[k]);
      }
    };
  },

  /** The logarithm of a sum is the mean of its terms' logarithms by their shares of it, and the entropy of these shares. */
  stars(member, K) {
    const [shares, alone, given] = ["shares", "alone", "given"].map((name) => unpacked(member[name], name === "given"));
    const { width, columns } = member.terms;
    return (row, add) => {
      const places = termPlaces(member.terms, cutCodes(member.cuts, row));
      const there = [...places.keys()].filter((term) => places[term] > 0);
      const said = (k, term, parent) => given[(k * width + places[term]) * width + places[parent]];
      for (let k = 0; k < K; k++) {
        add(null, k, shares[k]);
        if (!there.length) continue;
        const stars = there.map((parent) => alone[k * width + places[parent]] + there.reduce((sum, term) => sum + said(k, term, parent), 0));
        const own = sharesOf(stars);
        there.forEach((term, a) => {
          const hung = there.reduce((sum, parent, b) => sum + own[b] * said(k, term, parent), 0);
          add(columns[term][0], k, own[a] * alone[k * width + places[term]] + hung);
          if (own[a] > 0) add(null, k, -own[a] * Math.log(own[a]));
        });
        add(null, k, -Math.log(there.length));
      }
    };
  },
};
