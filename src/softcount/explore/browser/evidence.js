// What is given, in words: in the address of the page, as a command, as Python; and what of it is impossible.

/** The levels or bars that evidence allows, by place. */
const chosenCells = (e) => [...e.cells.keys()].filter((c) => e.cells[c]);

/** A set of cells; null where it says nothing, because all or none are in it. */
function cellsOf(size, chosen) {
  const cells = new Uint8Array(size);
  for (const c of chosen) cells[c] = 1;
  const count = cells.reduce((a, b) => a + b, 0);
  return count && count < size ? { cells } : null;
}

const shortNumber = (x) => String(Number(x.toPrecision(6)));

/** Bars outside the range of the data are not drawn: each goes with the bar next to it. */
function withHidden({ hidden, size }, e) {
  if (!hidden || !e || !e.cells) return e;
  const cells = Uint8Array.from(e.cells);
  [cells[0], cells[size - 1]] = [cells[1], cells[size - 2]];
  return cells.some(Boolean) && !cells.every(Boolean) ? { cells } : null;
}

/** A bar in words. Bars of whole numbers say which numbers they hold. */
function barName(variable, c) {
  const { edges, whole, hidden } = variable;
  if (hidden && c === 1) return edges[1] === variable.range[0] ? shortNumber(edges[1]) : `at most ${shortNumber(edges[1])}`;
  if (hidden && c === edges.length - 1) return `above ${shortNumber(edges[c - 1])}`;
  if (c === 0) return whole ? `up to ${shortNumber(edges[0])}` : `at most ${shortNumber(edges[0])}`;
  if (c === edges.length) return `above ${shortNumber(edges[c - 1])}`;
  const low = whole ? edges[c - 1] + 1 : edges[c - 1];
  return low === edges[c] ? shortNumber(low) : `${shortNumber(low)} to ${shortNumber(edges[c])}`;
}

const cellName = (variable, c) => (variable.kind === "number" ? barName(variable, c) : variable.levels[c]);

/** The ends of a run of bars, infinite where it is open; null where the bars are no run. */
function rangeOf(variable, chosen) {
  const first = chosen[0];
  const last = chosen[chosen.length - 1];
  if (last - first + 1 !== chosen.length) return null;
  return [first === 0 ? -Infinity : variable.edges[first - 1], last === variable.edges.length ? Infinity : variable.edges[last]];
}

/** What is given of a variable, for people. */
function evidenceText(variable, e) {
  if ("text" in e) return e.text.length > 40 ? `${e.text.slice(0, 40)}…` : e.text;
  if ("value" in e) return `= ${e.value}`;
  const chosen = chosenCells(e);
  if (variable.kind === "number") {
    const range = rangeOf(variable, chosen);
    if (variable.hidden && chosen.join() === "0,1") return barName(variable, 1);
    if (range && range[0] === -Infinity) return `at most ${shortNumber(range[1])}`;
    if (range && range[1] === Infinity) return `above ${shortNumber(range[0])}`;
    if (range && chosen.length > 1) return `${shortNumber(variable.whole ? range[0] + 1 : range[0])} to ${shortNumber(range[1])}`;
  }
  if (chosen.length > variable.size / 2 && chosen.length > 2) {
    const others = [...e.cells.keys()].filter((c) => !e.cells[c]);
    return `not ${others.map((c) => cellName(variable, c)).join(" or ")}`;
  }
  return chosen.map((c) => cellName(variable, c)).join(" or ");
}

// -- the state in the page's address, by names

const escaped = (text) => encodeURIComponent(text).replace(/[!.'()*~]/g, (c) => `%${c.charCodeAt(0).toString(16)}`);

function addressOf(variables, evidence) {
  const parts = [];
  evidence.forEach((e, at) => {
    if (!e) return;
    const variable = variables[at];
    let text;
    if ("text" in e) text = `"${escaped(e.text)}`;
    else if ("value" in e) text = `=${e.value}`;
    else if (variable.kind === "number") text = `[${chosenCells(e).map((c) => `${variable.edges[c - 1] ?? ""}:${variable.edges[c] ?? ""}`).join("|")}`;
    else text = chosenCells(e).map((c) => escaped(variable.levels[c])).join("|");
    parts.push(`${escaped(variable.name)}=${text}`);
  });
  return parts.join("&");
}

/** The evidence that an address tells; names and levels that the model does not have are passed over. */
function evidenceIn(address, variables) {
  const found = new Array(variables.length).fill(null);
  for (const part of address.split("&")) {
    const cut = part.indexOf("=");
    if (cut < 0) continue;
    try {
      const name = decodeURIComponent(part.slice(0, cut));
      const at = variables.findIndex((variable) => variable.name === name);
      if (at >= 0) found[at] = evidenceFrom(variables[at], part.slice(cut + 1));
    } catch {
      continue; // no address of ours
    }
  }
  return found;
}

function evidenceFrom(variable, text) {
  if (variable.kind === "text") return text.startsWith('"') || text.startsWith("%22") ? { text: decodeURIComponent(text.replace(/^("|%22)/, "")) } : null;
  if (variable.kind === "number" && text.startsWith("=")) return Number.isFinite(Number(text.slice(1))) ? { value: Number(text.slice(1)) } : null;
  if (variable.kind === "number") {
    if (variable.exact) return null;
    const bars = [...Array(variable.size).keys()];
    const spans = decodeURIComponent(text).replace(/^\[/, "").split("|");
    return cellsOf(variable.size, bars.filter((c) => spans.includes(`${variable.edges[c - 1] ?? ""}:${variable.edges[c] ?? ""}`)));
  }
  const names = text.split("|").map(decodeURIComponent);
  return cellsOf(variable.size, [...variable.levels.keys()].filter((c) => names.includes(variable.levels[c])));
}

// -- as a command, and as Python

const shellWord = (text) => (/^[\w./=:-]+$/.test(text) ? text : `'${text.replace(/'/g, "'\\''")}'`);
const pythonText = (text) => JSON.stringify(text).replace(/[\u007f-\uffff]/g, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`);
const pythonNumber = (x) => (x === Infinity ? 'float("inf")' : x === -Infinity ? '-float("inf")' : String(x));

/** The question as `query` takes it, in the shell and in Python, and the names of the columns that it cannot take. */
function asQuestion(variables, evidence, asked, sets) {
  const shell = [];
  const python = [];
  const left = [];
  evidence.forEach((e, at) => {
    const variable = variables[at];
    if (!e || at === asked) return;
    const written = "text" in e ? [e.text, pythonText(e.text)] : "value" in e ? [String(e.value), String(e.value)] : writeCells(variable, e, sets);
    if (!written) {
      left.push(variable.name);
      return;
    }
    shell.push(`--given ${shellWord(`${variable.name}=${written[0]}`)}`);
    python.push(`${pythonText(variable.name)}: ${written[1]}`);
  });
  return { shell, python, left };
}

function writeCells(variable, e, sets) {
  const chosen = chosenCells(e);
  if (variable.kind === "number") {
    const range = sets && rangeOf(variable, chosen);
    if (!range) return null;
    const low = variable.whole ? range[0] + 1 : range[0];
    const end = (x) => (Number.isFinite(x) ? String(x) : x > 0 ? "1e300" : "-1e300");
    return [`${end(low)}..${end(range[1])}`, `(${end(low)}, ${end(range[1])})`];
  }
  const words = chosen.map((c) => (variable.python ? variable.python[c] : pythonText(variable.levels[c])));
  if (chosen.length > 1 && !sets) return null;
  return [chosen.map((c) => variable.levels[c]).join("|"), chosen.length > 1 ? `[${words.join(", ")}]` : words[0]];
}

/** A row of one cell for each column that is given: a level by its place, a number, a text; null where that is none. */
function singleCells(variables, evidence, asked) {
  const row = {};
  for (const [at, e] of evidence.entries()) {
    if (!e || at === asked) continue;
    const chosen = e.cells ? chosenCells(e) : [];
    if (e.cells && (chosen.length > 1 || variables[at].kind === "number")) return null;
    row[variables[at].name] = e.cells ? chosen[0] : (e.text ?? e.value);
  }
  return row;
}

// -- what cannot be

const MOST_TRIES = 4000;

/** The fewest things given that are impossible together, by place; of several such sets one. */
function conflict(engine, evidence) {
  const given = evidence.map((e, at) => (e ? at : -1)).filter((at) => at >= 0);
  const only = (places) => evidence.map((e, at) => (places.includes(at) ? e : null));
  let tries = 0;
  for (let size = 1; size <= given.length; size++)
    for (const places of choices(given, size)) {
      if (++tries > MOST_TRIES) return shrunk(engine, given, only);
      if (!engine.possible(only(places))) return places;
    }
  return given;
}

function* choices(items, size, from = 0) {
  if (size === 0) yield [];
  else for (let i = from; i <= items.length - size; i++) for (const rest of choices(items, size - 1, i + 1)) yield [items[i], ...rest];
}

/** A set of which nothing can be left out; where all small sets are too many to try. */
function shrunk(engine, given, only) {
  let left = given;
  for (const at of given) {
    const without = left.filter((other) => other !== at);
    if (!engine.possible(only(without))) left = without;
  }
  return left;
}
