// The page itself. All text from the model goes in as text, never as markup.

function made(tag, properties = {}, ...children) {
  const found = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name.startsWith("on")) found.addEventListener(name.slice(2), value);
    else if (name === "class") found.className = value;
    else found.setAttribute(name, value);
  }
  found.append(...children.filter((child) => child !== null && child !== undefined));
  return found;
}

function percent(share) {
  if (share === 0 || share > 1 - 1e-12) return share ? "100 %" : "0 %";
  if (share > 0.9995) return "> 99.9 %";
  if (share < 0.0005) return "< 0.1 %";
  return `${(100 * share).toFixed(1)} %`;
}

/** A name that may break after the marks inside it, and in no word. */
const breaking = (name) => name.split(/(?<=[_.\-/:])/).flatMap((part, place) => (place ? [made("wbr"), part] : [part]));

/** Levels as people look for them: numbers by value, intervals as they follow each other, others by share. */
function sortedLevels({ levels, cuts }, shares) {
  const places = [...levels.keys()];
  if (cuts) return places;
  const values = levels.map((level) => (level.trim() === "" ? NaN : Number(level)));
  if (values.every(Number.isFinite)) return places.sort((a, b) => values[a] - values[b]);
  return places.sort((a, b) => shares[b] - shares[a] || a - b);
}

const signed = (x) => Math.abs(x) < 0.005 ? "0.00" : `${x < 0 ? "−" : "+"}${Number.isFinite(x) ? Math.abs(x).toFixed(2) : "∞"}`;
const MANY_LEVELS = 60;
const FEW_LEVELS = 6;

function startPage(engine, info) {
  const { variables } = engine;
  const state = { evidence: new Array(variables.length).fill(null), past: [], asked: engine.asked, against: null, mode: "one" };
  const nothing = engine.answer(state.evidence).shares;
  const at = (id) => document.getElementById(id);
  const cards = variables.map((variable, place) => makeCard(variable, place));
  const onlyText = variables.every((variable, place) => place === engine.asked || variable.kind === "text");
  const graph = info.model.graph && makeGraph(info.model.graph, variables, goTo);

  // -- changing what is given

  function change(place, given) {
    const e = withHidden(variables[place], given);
    state.past.push(state.evidence);
    state.evidence = state.evidence.map((old, other) => (other === place ? e : old));
    state.against = null;
    update();
  }

  function replaceAll(evidence) {
    state.past.push(state.evidence);
    state.evidence = evidence;
    state.against = null;
    update();
  }

  function undo() {
    if (!state.past.length) return;
    state.evidence = state.past.pop();
    update();
  }

  /** What a click on a level or bar does: alone, among several, or not this one. */
  function pick(place, cell, event) {
    const variable = variables[place];
    const old = state.evidence[place];
    if (variable.exact) {
      const value = middleOf(variable, cell);
      return change(place, old && barOf(variable.edges, old.value) === cell ? null : { value });
    }
    const mode = event.altKey ? "not" : event.shiftKey || event.ctrlKey || event.metaKey ? "several" : state.mode;
    const all = [...Array(variable.size).keys()];
    const chosen = old && old.cells ? chosenCells(old) : null;
    if (mode === "not") {
      const others = (chosen || all).includes(cell) ? (chosen || all).filter((c) => c !== cell) : [...chosen, cell];
      return change(place, cellsOf(variable.size, others));
    }
    if (mode === "several" && chosen) {
      const others = chosen.includes(cell) ? chosen.filter((c) => c !== cell) : [...chosen, cell];
      return change(place, cellsOf(variable.size, others));
    }
    const same = chosen && chosen.includes(cell) && card(place).every((other) => other === cell || !chosen.includes(other));
    return change(place, same ? null : cellsOf(variable.size, [cell]));
  }

  /** The bars of a variable that are drawn. */
  const card = (place) => cards[place].bars.map(({ cell }) => cell);

  function pickRange(place, from, to) {
    const [low, high] = from < to ? [from, to] : [to, from];
    change(place, cellsOf(variables[place].size, [...Array(high - low + 1).keys()].map((i) => low + i)));
  }

  // -- a card for every variable

  function makeCard(variable, place) {
    const title = made("h3", { id: `name-${place}` }, ...breaking(variable.name));
    const summary = made("span", { class: "summary" });
    const card = made("section", { class: `card ${variable.kind}`, "aria-labelledby": `name-${place}`, id: `card-${place}` });
    const clear = made("button", { type: "button", class: "clear", "aria-label": `Clear ${variable.name}`, onclick: () => change(place, null) }, "×");
    card.append(made("div", { class: "top" }, title, summary, clear));
    const found = { card, summary, clear, bars: [], place };
    if (variable.kind === "text") addDocument(found, variable);
    else if (variable.kind === "number") addNumber(found, variable);
    else addLevels(found, variable);
    return found;
  }

  function addBar(card, variable, cell, ...inside) {
    const bar = made("button", { type: "button", class: "bar", "data-cell": String(cell), tabindex: card.bars.length ? "-1" : "0", "aria-pressed": "false" }, ...inside);
    bar.addEventListener("click", (event) => card.dragged || pick(card.place, cell, event));
    bar.addEventListener("keydown", (event) => barKey(card, card.bars.findIndex((other) => other.bar === bar), event));
    const parts = Object.fromEntries(["fill", "tick", "edge", "share"].map((name) => [name, bar.querySelector(`.${name}`)]));
    card.bars.push({ bar, cell, ...parts });
    return bar;
  }

  function barKey(card, now, event) {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    const target = event.key === "Home" ? 0 : event.key === "End" ? card.bars.length - 1 : now + (step || 0);
    if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      pick(card.place, card.bars[now].cell, event);
    } else if (event.key === "Delete" || event.key === "Backspace") {
      event.preventDefault();
      change(card.place, null);
    } else if ((step || event.key === "Home" || event.key === "End") && card.bars[target]) {
      event.preventDefault();
      const variable = variables[card.place];
      if (event.shiftKey && variable.kind === "number" && !variable.exact) {
        card.anchor = card.anchor ?? now;
        pickRange(card.place, card.bars[card.anchor].cell, card.bars[target].cell);
      } else card.anchor = null;
      card.bars[now].bar.tabIndex = -1;
      card.bars[target].bar.tabIndex = 0;
      card.bars[target].bar.focus();
    }
  }

  function addLevels(card, variable) {
    const list = made("div", { class: "levels", role: "group", "aria-label": `Categories of ${variable.name}` });
    const order = sortedLevels(variable, nothing[card.place]);
    const rare = new Set(variable.size > MANY_LEVELS ? [...order].sort((a, b) => nothing[card.place][b] - nothing[card.place][a]).slice(MANY_LEVELS) : []);
    for (const cell of order.filter((own) => !rare.has(own))) {
      const fill = made("span", { class: card.place === engine.asked && engine.reasons === "columns" ? `fill class-${cell % 8}` : "fill" });
      const bar = addBar(card, variable, cell, made("span", { class: "name" }, variable.levels[cell]), made("span", { class: "track" }, fill, made("span", { class: "tick" })), made("span", { class: "share" }));
      bar.disabled = Boolean(variable.merged) && cell === variable.size - 1;
      list.append(bar);
    }
    card.card.append(list);
    if (!rare.size) return;
    const choose = made("select", { "aria-label": `Another category of ${variable.name}`, onchange: () => choose.value && change(card.place, cellsOf(variable.size, [Number(choose.value)])) },
      made("option", { value: "" }, `${rare.size} rarer categories …`), ...order.filter((cell) => rare.has(cell)).map((cell) => made("option", { value: String(cell) }, variable.levels[cell])));
    card.card.append(choose);
    card.choose = choose;
  }

  function addNumber(card, variable) {
    const { data } = variable;
    const plot = made("div", { class: data ? "plot seen" : "plot", role: "group", "aria-label": `Bars of ${variable.name}` });
    const ends = variable.hidden ? 1 : 0;
    for (let cell = ends; cell < variable.size - ends; cell++) {
      const seen = data ? [made("span", { class: "data" })] : [];
      plot.append(addBar(card, variable, cell, ...seen, made("span", { class: "fill" }), made("span", { class: "edge" }), made("span", { class: "tick" })));
    }
    if (!variable.exact) addDragging(card, plot);
    card.card.append(plot, made("div", { class: "axis", "aria-hidden": "true" }, ...axisLabels(variable)));
    const box = made("input", { type: "text", inputmode: "decimal", size: "8", "aria-label": `Exact value of ${variable.name}`, placeholder: "exactly …" });
    box.addEventListener("change", () => giveValue(card.place, box));
    card.box = box;
    card.card.append(made("div", { class: "exactly" }, made("label", {}, "value ", box), (card.bar = made("span", { class: "under" }))));
  }

  function giveValue(place, box) {
    const text = box.value.trim();
    const value = Number(text);
    const wrong = text !== "" && (!Number.isFinite(value) || (variables[place].whole && (value < 0 || !Number.isInteger(value))));
    box.setAttribute("aria-invalid", String(wrong));
    if (!wrong) change(place, text === "" ? null : { value });
  }

  /** From the bar where the button went down to the one where it comes up. */
  function addDragging(card, plot) {
    const under = (event) => card.bars.find(({ bar }) => event.clientX >= bar.getBoundingClientRect().left && event.clientX < bar.getBoundingClientRect().right);
    let from = null;
    plot.addEventListener("pointerdown", (event) => {
      from = under(event);
      card.dragged = false;
    });
    plot.addEventListener("pointermove", (event) => {
      if (!from || event.buttons !== 1) return;
      const to = under(event);
      if (!to || (to === from && !card.dragged)) return;
      card.dragged = true;
      const [low, high] = [Math.min(from.cell, to.cell), Math.max(from.cell, to.cell)];
      for (const { bar, cell } of card.bars) bar.classList.toggle("sweep", cell >= low && cell <= high);
      card.sweep = [low, high];
    });
    window.addEventListener("pointerup", () => {
      if (from && card.dragged && card.sweep) pickRange(card.place, ...card.sweep);
      for (const { bar } of card.bars) bar.classList.remove("sweep");
      from = null;
      card.sweep = null;
      setTimeout(() => (card.dragged = false));
    });
  }

  function addDocument(card, variable) {
    const box = made("textarea", { rows: "6", "aria-label": `A document for ${variable.name}`, placeholder: "paste a document here" });
    let waiting = 0;
    box.addEventListener("input", () => {
      clearTimeout(waiting);
      waiting = setTimeout(() => change(card.place, box.value ? { text: box.value } : null), 150);
    });
    card.box = box;
    card.words = made("div", { class: "words" });
    card.card.append(box, card.words);
  }

  // -- showing what follows

  function update() {
    const begun = performance.now();
    const { evidence } = state;
    const found = engine.answer(evidence);
    at("problem").hidden = found.possible;
    document.body.classList.toggle("impossible", !found.possible);
    for (const card of cards) showGiven(card, evidence[card.place]);
    showChips(evidence);
    showAddress(evidence);
    clearTimeout(waiting);
    if (graph) graph.show(found.shares, evidence, state.asked);
    if (found.possible) {
      for (const card of cards) if (card.place !== state.asked) showShares(card, found.shares[card.place]);
      showAnswer(evidence, found.shares[state.asked]);
      showEvidence(evidence);
      showInformation(evidence);
      showLikeliest(evidence);
    } else showConflict(evidence);
    showQuestion(evidence);
    at("undo").disabled = !state.past.length;
    at("clear").disabled = !evidence.some(Boolean);
    document.documentElement.dataset.took = (performance.now() - begun).toFixed(1);
  }

  function showGiven(card, e) {
    card.card.classList.toggle("given", Boolean(e));
    card.clear.hidden = !e;
    const variable = variables[card.place];
    const on = (cell) => Boolean(e) && ("value" in e ? barOf(variable.edges, e.value) === cell : Boolean(e.cells && e.cells[cell]));
    for (const { bar, cell } of card.bars) {
      bar.setAttribute("aria-pressed", String(on(cell)));
      bar.classList.toggle("off", Boolean(e) && !on(cell));
    }
    if (card.choose) card.choose.value = "";
    if (card.box && document.activeElement !== card.box) {
      card.box.value = e && "value" in e ? String(e.value) : e && "text" in e ? e.text : "";
      card.box.removeAttribute("aria-invalid");
    }
    if (card.bar) card.bar.textContent = e && "value" in e && !variable.form && !variable.exact ? "taken as its bar" : "";
  }

  function showShares(card, shares) {
    if (!shares) return;
    const variable = variables[card.place];
    const before = nothing[card.place];
    const number = variable.kind === "number";
    const seen = variable.data ?? before;
    const drawn = (own) => card.bars.map(({ cell }) => own[cell]);
    // One bar that is set would flatten the histogram behind it: such a bar ends at the top of the card.
    const most = Math.max(...drawn(seen), 1e-300);
    const top = number ? Math.max(most, Math.min(Math.max(...drawn(shares)), 2.2 * most)) : 1;
    for (const { bar, cell, fill, tick, edge, share } of card.bars) {
      for (const part of [fill, edge]) if (part) part.style.setProperty("--p", Math.min(shares[cell] / top, 1).toFixed(5));
      tick.style.setProperty("--p", (before[cell] / top).toFixed(5));
      if (variable.data) bar.firstChild.style.setProperty("--p", (seen[cell] / top).toFixed(5));
      if (share) share.textContent = percent(shares[cell]);
      const words = `${cellName(variable, cell)}: ${percent(shares[cell])}, ${variable.data ? "of the rows" : "with nothing given"} ${percent(seen[cell])}`;
      bar.title = words;
      if (number) bar.setAttribute("aria-label", words);
    }
    card.summary.textContent = number ? medianText(variable, shares, state.evidence[card.place]) : "";
  }

  function showChips(evidence) {
    const chips = evidence.flatMap((e, place) => e ? [made("li", {}, made("button", { type: "button", class: "chip", "aria-label": `Clear: ${variables[place].name} ${evidenceText(variables[place], e)}`, onclick: () => change(place, null) },
      made("b", {}, variables[place].name), ` ${evidenceText(variables[place], e)} `, made("span", { "aria-hidden": "true" }, "×")))] : []);
    at("chips").replaceChildren(...chips);
    at("nothing").hidden = chips.length > 0;
  }

  function showEvidence(evidence) {
    const log = engine.logEvidence(evidence);
    const sets = evidence.some((e) => e && e.cells);
    const points = evidence.filter((e) => e && !e.cells).length;
    let text = "";
    if (sets && log !== null) {
      const share = Math.exp(log);
      text = `Probability of these values: ${share >= 0.0005 ? percent(share) : `1 in ${Math.round(Math.exp(-log)).toLocaleString("en")}`}${points ? ", without exact values and documents" : ""}.`;
    } else if (points) text = "Exact values and documents have no probability of their own.";
    at("evidence").textContent = text;
  }

  /** Reasons for the probabilities that are shown; what the columns do not explain of them has a step of its own. */
  function showReasons(evidence, shares) {
    const logs = engine.predicted && shares ? Array.from(shares, Math.log) : null;
    const found = engine.waterfall(evidence, state.against, state.asked, logs);
    if (found && logs) {
      const total = logs[found.ours] - logs[found.theirs];
      const rest = total - found.total;
      if (Number.isFinite(rest) && Math.abs(rest) > 5e-3) {
        found.steps.push({ name: engine.difference, odds: rest });
        found.total = total;
      }
    }
    const box = at("reasons");
    const { levels } = variables[state.asked];
    if (!found || !levels) return box.replaceChildren(made("p", { class: "quiet" }, "There is only one class."));
    const choose = made("select", { "aria-label": "Against which class", onchange: () => { state.against = Number(choose.value); showReasons(state.evidence, shares); at("reasons").querySelector("select").focus(); } },
      ...levels.flatMap((name, k) => k === found.ours ? [] : [made("option", { value: String(k), ...(k === found.theirs ? { selected: "" } : {}) }, name)]));
    const most = Math.max(...found.steps.map((step) => Math.abs(step.odds)).filter(Number.isFinite), 1e-9);
    const rows = [...found.steps.filter((s) => s.name === null), ...found.steps.filter((s) => s.name !== null).sort((a, b) => Math.abs(b.odds) - Math.abs(a.odds))];
    box.replaceChildren(
      made("p", { class: "versus" }, made("b", {}, levels[found.ours]), " against ", choose),
      made("ul", { class: "steps" }, ...rows.map((step) => reason(step, most)), reason({ name: "total", odds: found.total, whole: true }, most)),
      made("p", { class: "quiet" }, `Log-odds; they add up. Odds ${oddsOf(found.total)}.`));
    for (const card of cards) if (card.words) showWords(card, found, evidence);
  }

  function reason(step, most) {
    const share = Math.min(Math.abs(step.odds) / most, 1);
    const bar = made("span", { class: `push ${step.odds < 0 ? "minus" : "plus"}` });
    bar.style.setProperty("--p", share.toFixed(4));
    return made("li", step.whole ? { class: "whole" } : {}, made("span", { class: "name", title: step.name ?? "start" }, step.name ?? "start"), made("span", { class: "track" }, bar), made("span", { class: "share" }, signed(step.odds)));
  }

  function oddsOf(total) {
    if (!Number.isFinite(total)) return "beyond any number";
    const odds = Math.exp(Math.abs(total));
    return `${odds < 1e6 ? Number(odds.toPrecision(3)).toLocaleString("en") : odds.toExponential(1)} to 1`;
  }

  function showWords(card, found, evidence) {
    const e = evidence[card.place];
    const words = e ? engine.wordOdds(card.place, evidence, found.ours, found.theirs).slice(0, 24) : [];
    card.words.replaceChildren(...words.map(({ word, count, odds }) =>
      made("span", { class: `word ${odds < 0 ? "minus" : "plus"}` }, `${word}${count > 1 ? ` ×${count}` : ""} ${signed(odds)}`)));
    if (!e) card.words.replaceChildren(...typicalWords(card));
    if (e && !words.length) card.words.replaceChildren(made("p", { class: "quiet" }, "The model knows none of these words."));
  }

  /** The characteristic words of each class; a click adds one to the document. */
  function typicalWords(card) {
    const add = (word) => {
      card.box.value = `${card.box.value} ${word}`.trim();
      change(card.place, { text: card.box.value });
    };
    return variables[card.place].typical.slice(0, 8).map((words, k) => made("p", { class: "typical" },
      made("b", {}, variables[engine.asked].levels[k]), ...words.map((word) => made("button", { type: "button", class: "word", onclick: () => add(word) }, word))));
  }

  function showInformation(evidence) {
    const found = engine.information(evidence, state.asked);
    if (!found) return at("informative").replaceChildren(made("li", { class: "quiet" }, "Not computed for so large a network."));
    const best = found.filter(({ bits }) => bits > 5e-4).sort((a, b) => b.bits - a.bits).slice(0, 6);
    const rows = best.map(({ at: place, bits }) => {
      const bar = made("span", { class: "push plus" });
      bar.style.setProperty("--p", (bits / best[0].bits).toFixed(4));
      return made("li", {}, made("a", { class: "name", title: variables[place].name, href: `#card-${place}`, onclick: (event) => { event.preventDefault(); goTo(place); } }, variables[place].name), made("span", { class: "track" }, bar), made("span", { class: "share" }, `${bits.toFixed(bits < 0.1 ? 3 : 2)} bit`));
    });
    at("informative").replaceChildren(...(rows.length ? rows : [made("li", { class: "quiet" }, "No other column would change the answer.")]));
  }

  function goTo(place) {
    const { card, bars, box } = cards[place];
    card.scrollIntoView({ block: "center" });
    (bars.length ? bars.find(({ bar }) => bar.tabIndex === 0).bar : box).focus({ preventScroll: true });
  }

  function showLikeliest(evidence) {
    const found = engine.likeliest(evidence);
    const rows = !found ? [] : variables.flatMap((variable, place) => {
      const e = evidence[place];
      if (variable.kind === "text" || (!found.has(place) && !e)) return [];
      const value = found.has(place) && !(e && "value" in e) ? cellName(variable, found.get(place)) : evidenceText(variable, e);
      return [made("tr", e ? { class: "given-row" } : {}, made("th", { scope: "row" }, variable.name), made("td", {}, value))];
    });
    at("likeliest").replaceChildren(...rows);
  }

  function showConflict(evidence) {
    const places = conflict(engine, evidence);
    const given = places.map((place) => `${variables[place].name} ${evidenceText(variables[place], evidence[place])}`);
    at("problem").textContent = given.length === 1
      ? `Impossible under this model: ${given[0]}. Clear it, or undo.`
      : `Impossible together under this model: ${given.join("; ")}. Clear one of them, or undo.`;
    at("evidence").textContent = "";
    for (const id of ["reasons", "informative", "likeliest"]) at(id).replaceChildren();
    for (const { bars, summary: words } of cards) {
      words.textContent = "";
      for (const { fill, share } of bars) {
        fill.style.setProperty("--p", "0");
        if (share) share.textContent = "–";
      }
    }
  }

  function showQuestion(evidence) {
    at("elsewhere").hidden = !info.elsewhere;
    if (!info.elsewhere) return;
    const asked = variables[state.asked];
    const { shell, python, left } = asQuestion(variables, evidence, state.asked, info.sets);
    at("shell").textContent = ["softcount query", shellWord(info.name), `--of ${shellWord(asked.name)}`, ...shell].join(" ");
    at("python").textContent = `softcount.load(${pythonText(info.name)}).query(${pythonText(asked.name)}${python.length ? `, given={${python.join(", ")}}` : ""})`;
    at("left").textContent = left.length ? `Left out, because query takes one value of a column: ${left.join(", ")}.` : "";
  }

  // -- the class: as predict has it, computed here or by the server that this page came from

  let waiting = 0;

  /** One card for the class. Reasons are those of the probabilities that it shows. */
  function showAnswer(evidence, shares) {
    const card = cards[state.asked];
    const asks = info.asking && info.model.asks;
    const row = asks ? singleCells(variables, evidence, state.asked) : null;
    const mine = engine.predicted ? engine.predicted(evidence) : null;
    showShares(card, mine ?? shares);
    sortBars(card, mine ?? shares);
    showReasons(evidence, mine);
    const others = info.model.answers;
    let source = others ? `Model: ${others}.` : "";
    if (engine.predicted) source = onlyText ? "Same as predict." : `Same as predict. Other columns: ${others}.`;
    if (info.model.asks) source = `From ${others}. The answer of predict may differ.`;
    if (asks) {
      if (row && !evidence[state.asked]) waiting = setTimeout(() => askServer(card, row), 60);
      source = `From ${others}, because predict takes one value of each column.`;
      if (row) source = `Same as predict. Reasons and other columns: ${others}.`;
    }
    at("source").textContent = source;
  }

  /** Many classes stand in the order of their probabilities, so that the first are in sight. */
  function sortBars(card, shares) {
    const variable = variables[card.place];
    if (variable.size <= FEW_LEVELS || variable.size > MANY_LEVELS || !variable.levels) return;
    const order = sortedLevels(variable, shares);
    if (card.bars.every(({ cell }, at) => cell === order[at])) return;
    const focused = document.activeElement;
    const list = card.bars[0].bar.parentElement;
    card.bars.sort((a, b) => order.indexOf(a.cell) - order.indexOf(b.cell));
    list.append(...card.bars.map(({ bar }) => bar));
    if (list.contains(focused)) focused.focus();
    else list.scrollTop = 0;
    card.bars.forEach(({ bar }, at) => (bar.tabIndex = at ? -1 : 0));
  }

  async function askServer(card, row) {
    const number = waiting;
    let problem = "";
    try {
      const answer = await fetch("/predict", { method: "POST", headers: { "X-Softcount-Token": info.asking.token }, body: JSON.stringify(row) });
      if (answer.ok) {
        const shares = Object.values(await answer.json());
        if (number === waiting) {
          showShares(card, shares);
          sortBars(card, shares);
        }
      } else problem = await answer.text();
    } catch {
      problem = "The server no longer answers.";
    }
    if (number === waiting && problem) at("source").textContent = problem;
  }

  function showAddress(evidence) {
    try {
      history.replaceState(null, "", `#${addressOf(variables, evidence)}`);
    } catch {
      // A page in a frame of its own may not change its address; all else works.
    }
  }

  // -- rows that came with the page

  function loadRow() {
    const number = Number(at("row").value);
    const row = info.rows && info.rows.cells[number - 1];
    at("row").setAttribute("aria-invalid", String(!row));
    if (!row) return;
    const skipped = [];
    const evidence = variables.map((variable) => {
      const place = info.rows.names.indexOf(variable.name);
      const cell = place < 0 ? null : row[place];
      if (cell === null || cell === undefined) return null;
      const e = cellEvidence(variable, cell);
      if (!e) skipped.push(variable.name);
      return e;
    });
    const asked = evidence[state.asked];
    evidence[state.asked] = null;
    replaceAll(evidence);
    const notes = [];
    if (asked) notes.push(`${variables[state.asked].name} in the data: ${evidenceText(variables[state.asked], asked)}.`);
    if (skipped.length) notes.push(`Left out, because the model has not seen the value: ${skipped.join(", ")}.`);
    at("row-note").textContent = notes.join(" ");
  }

  async function copy(id) {
    const text = id === "link" ? location.href : at(id).textContent;
    try {
      await navigator.clipboard.writeText(text);
      at("copied").textContent = "Copied.";
    } catch {
      const range = document.createRange();
      if (id !== "link") range.selectNodeContents(at(id));
      getSelection().removeAllRanges();
      getSelection().addRange(range);
      at("copied").textContent = id === "link" ? "Copy the address of this page." : "Selected: copy it with your keyboard.";
    }
  }

  /** Cards by how much they tell of the class; those of a network parents first. */
  function cardOrder() {
    if (engine.order) return engine.order;
    const bits = new Map(engine.information(state.evidence, state.asked).map(({ at: place, bits: own }) => [place, own]));
    return [...variables.keys()].sort((a, b) => (bits.get(b) ?? 99) - (bits.get(a) ?? 99));
  }

  function arrange(order) {
    at("asked").append(cards[state.asked].card);
    cards[state.asked].card.append(source);
    at("cards").append(...order.filter((place) => place !== state.asked).map((place) => cards[place].card));
  }

  /** Of a network any node with levels can be asked about. */
  function addAsking(order) {
    const choose = made("select", { id: "about" }, ...order.filter((place) => variables[place].levels).map((place) =>
      made("option", { value: String(place), ...(place === state.asked ? { selected: "" } : {}) }, variables[place].name)));
    choose.addEventListener("change", () => {
      state.asked = Number(choose.value);
      state.against = null;
      arrange(order);
      update();
    });
    at("asked").prepend(made("p", { class: "versus" }, made("label", {}, "Question: ", choose)));
  }

  const source = made("p", { class: "quiet", id: "source", role: "status" });

  function begin() {
    const order = cardOrder();
    if (graph) at("graph").append(graph.box);
    at("graph").hidden = !graph;
    at("tools").hidden = onlyText;
    for (const id of ["informative", "likeliest"]) at(id).closest("section").hidden = onlyText;
    at("data-tip").hidden = !variables.some((variable) => variable.data);
    if (engine.order) addAsking(order);
    arrange(order);
    at("undo").addEventListener("click", undo);
    at("clear").addEventListener("click", () => replaceAll(new Array(variables.length).fill(null)));
    for (const name of ["shell", "python", "link"]) at(`copy-${name}`).addEventListener("click", () => copy(name));
    for (const radio of document.getElementsByName("mode")) radio.addEventListener("change", () => (state.mode = radio.value));
    if (info.rows) {
      at("load").addEventListener("click", loadRow);
      at("row").addEventListener("keydown", (event) => event.key === "Enter" && loadRow());
    }
    document.addEventListener("keydown", (event) => {
      if ((event.ctrlKey || event.metaKey) && event.key === "z" && !/^(INPUT|TEXTAREA)$/.test(event.target.tagName)) {
        event.preventDefault();
        undo();
      }
    });
    window.addEventListener("hashchange", () => replaceAll(evidenceIn(location.hash.slice(1), variables)));
    state.evidence = evidenceIn(location.hash.slice(1), variables);
    update();
    document.documentElement.dataset.ready = "yes";
  }

  begin();
  return { engine, state };
}

/** What a cell of a row says; null where it is a level that nobody knows. */
function cellEvidence(variable, cell) {
  if (variable.kind === "text") return { text: String(cell) };
  if (variable.kind === "number") return { value: Number(cell) };
  const level = variable.cuts && typeof cell === "number" ? barOf(variable.cuts, cell) : variable.levels.indexOf(String(cell));
  return level < 0 ? null : cellsOf(variable.size, [level]);
}

/** The number that a bar stands for where only exact numbers can be given, and in what `predict` says of a range. */
function middleOf({ edges, range, whole, hidden }, c) {
  if (hidden) c = Math.min(Math.max(c, 1), edges.length - 1);
  const width = edges.length > 1 ? edges[1] - edges[0] : 1;
  const low = c === 0 ? (range ? range[0] : edges[0] - width) : edges[c - 1];
  const high = c === edges.length ? (range ? Math.min(range[1], edges[c - 1] + 4 * width) : edges[c - 1] + width) : edges[c];
  return whole ? Math.max(Math.floor((low + high + 1) / 2), 0) : Number(((low + high) / 2).toPrecision(12));
}

/** About where the middle of a number lies, from its bars. */
function medianText(variable, shares, e) {
  if (e) return evidenceText(variable, e);
  let below = 0;
  for (let c = 0; c < shares.length; c++) {
    if (below + shares[c] >= 0.5) return `median ${shortNumber(quantileIn(variable, c, (0.5 - below) / shares[c]))}`;
    below += shares[c];
  }
  return "";
}

function quantileIn({ edges, whole }, c, part) {
  const low = c === 0 ? edges[0] : edges[c - 1];
  const high = c === edges.length ? edges[c - 1] : edges[c];
  return whole ? high : Number((low + part * (high - low)).toPrecision(3));
}

/** Four or five edges under the bars they belong to, between the least and the largest number if they are known. */
function axisLabels({ edges: all, size: bars, range, hidden }) {
  const [edges, size] = hidden ? [all.slice(1, -1), bars - 2] : [all, bars];
  const step = Math.max(1, Math.ceil(edges.length / 5));
  const found = [];
  const add = (value, place, name) => {
    const label = made("span", name ? { class: name } : {}, shortNumber(Number(value.toPrecision(4))));
    label.style.left = `${(100 * place) / size}%`;
    found.push(label);
  };
  if (range) add(range[0], 0, "first");
  for (let i = range ? step - 1 : 0; i < edges.length; i += step)
    if (!range || (i + 1 > 0.12 * size && i + 1 < 0.86 * size)) add(edges[i], i + 1, !range && i + 1 > 0.93 * size ? "last" : "");
  if (range) add(range[1], size, "last");
  return found;
}
