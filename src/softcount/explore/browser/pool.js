// What a classifier learned beside naive Bayes: members that score a row, each times its weight, added up.

const FARTHEST = 6; // deviations beyond which a number says no more

function poolPredictor(doc, variables) {
  const weights = unpacked(doc.weights);
  const bias = unpacked(doc.bias);
  const members = doc.members.map((member) => MEMBERS[member.kind](member, bias.length));
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

  /** The probability of each class, as predict has it; null where something given is not one value. */
  return (evidence, asked) => {
    if (!singleCells(variables, evidence, asked)) return null;
    const row = encoded(evidence);
    const scores = Float64Array.from(bias);
    members.forEach((member, place) => {
      const own = member(row);
      for (let k = 0; k < scores.length; k++) scores[k] += weights[place] * own[k];
    });
    return sharesOf(scores);
  };
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

const standardised = ({ floor, middle, spread }, column, x) => ((floor[column] > 0 ? Math.log(Math.max(x, floor[column])) : x) - middle[column]) / spread[column];

const MEMBERS = {
  additive(member, K) {
    const coefficients = unpacked(member.coefficients);
    const width = K === 2 ? 1 : K;
    return (row) => {
      const found = new Float64Array(width);
      const add = (place, times) => {
        for (let k = 0; k < width; k++) found[k] += times * coefficients[place * width + k];
      };
      add(0, 1);
      for (const place of termPlaces(member.terms, cutCodes(member.cuts, row))) add(1 + place, 1);
      for (let column = 0; column < member.lines; column++) {
        const z = standardised(member.scale, column, row.numbers[column]);
        if (!Number.isNaN(z)) add(1 + member.terms.width + column, Math.min(Math.max(z, -FARTHEST), FARTHEST));
      }
      return K === 2 ? [0, found[0]] : found;
    };
  },

  block(member, K) {
    const [means, spread, tables, shares] = ["means", "spread", "tables", "shares"].map((name) => unpacked(member[name]));
    const d = member.columns.length;
    function normals(row, k) {
      const there = [...Array(d).keys()].filter((i) => !Number.isNaN(row.numbers[member.columns[i]]));
      const off = there.map((i) => standardised(member.scale, i, row.numbers[member.columns[i]]) - means[k * d + i]);
      if (!member.joined) return there.reduce((sum, i, a) => sum - 0.5 * (off[a] ** 2 / spread[k * d + i] + Math.log(spread[k * d + i])), 0);
      const factor = cholesky(there.map((i) => there.map((j) => spread[(k * d + i) * d + j])));
      return forward(factor, off).reduce((sum, z, a) => sum - 0.5 * z * z - Math.log(factor[a][a]), 0);
    }
    return (row) => {
      const places = termPlaces(member.terms, cutCodes(member.cuts, row));
      return shares.map((share, k) => share + normals(row, k) + places.reduce((sum, place) => sum + tables[place * K + k], 0));
    };
  },

  stars(member, K) {
    const [shares, alone, given] = ["shares", "alone", "given"].map((name) => unpacked(member[name], name === "given"));
    const { width } = member.terms;
    return (row) => {
      const places = termPlaces(member.terms, cutCodes(member.cuts, row));
      const there = places.filter((place) => place > 0);
      if (!there.length) return shares;
      return shares.map((share, k) => {
        const stars = there.map((parent) => share + alone[k * width + parent] + there.reduce((sum, place) => sum + given[(k * width + place) * width + parent], 0));
        return logSum(stars) - Math.log(there.length);
      });
    };
  },
};
