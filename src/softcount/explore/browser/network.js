// A network: answers by messages in its junction tree, up to the root and down again.
//
// Evidence is as for a star: null, or {cells}, or {value} of a number. Numbers hang on the nodes above them and have
// tables of their bars; they are in no clique, what is given of them being a factor of those nodes.

const MOST_KEPT = 8e6; // cells of maps that are kept; beyond, they are made anew for every answer
const MOST_WORK = 4e6; // cells times levels, beyond which what would tell most is not computed

function networkEngine(doc) {
  const nodes = alike(doc.nodes).map((node) => ({ ...node, size: node.levels.length, table: unpacked(node.table) }));
  const sizes = nodes.map((node) => node.size);
  const leaves = alike(doc.leaves).map((leaf) => readLeaf(leaf, sizes));
  const variables = [...nodes, ...leaves];
  const tree = makeTree(doc, sizes);
  for (const node of nodes) tree.multiply(tree.base, node.scope, node.table);
  const order = doc.order.map((name) => variables.findIndex((variable) => variable.name === name));

  /** Tables and evidence multiplied together, after the way up; null where that is impossible. */
  function collected(evidence, most = false) {
    const pots = tree.base.map((pot) => Float64Array.from(pot));
    let log = 0;
    evidence.forEach((e, at) => {
      if (!e) return;
      if (at < nodes.length) tree.multiply(pots, [at], Float64Array.from(e.cells));
      else {
        const logs = leafLogs(leaves[at - nodes.length], e);
        const top = Math.max(...logs);
        log += top;
        const factor = logs.map((own) => (top === -Infinity ? 0 : Math.exp(own - top)));
        if (leaves[at - nodes.length].scope.length) tree.multiply(pots, leaves[at - nodes.length].scope, factor);
      }
    });
    const up = tree.up(pots, most);
    return up === null || log === -Infinity ? null : { pots, messages: up.messages, log: log + up.log };
  }

  function answer(evidence) {
    const found = collected(evidence);
    if (!found) return { possible: false };
    tree.down(found.pots, found.messages);
    const shares = nodes.map((_, at) => normalised(tree.margin(found.pots, [at])));
    for (const [place, leaf] of leaves.entries()) shares.push(leafShares(leaf, evidence[nodes.length + place], found.pots));
    return { possible: true, shares, log: found.log };
  }

  function leafShares(leaf, e, pots) {
    if (e && "value" in e) return onBar(leaf, e.value, 1);
    const above = leaf.scope.length ? normalised(tree.margin(pots, leaf.scope)) : [1];
    const found = new Float64Array(leaf.size);
    for (let group = 0; group < above.length; group++) {
      const all = e ? leafLogs(leaf, e)[group] : 0;
      for (let c = 0; c < leaf.size && above[group] > 0; c++)
        if (!e || e.cells[c]) found[c] += above[group] * Math.exp(leaf.logs[group * leaf.size + c] - all);
    }
    return found;
  }

  function logEvidence(evidence) {
    const found = collected(evidence.map((e) => (e && e.cells ? e : null)));
    return found ? found.log : -Infinity;
  }

  /** What every node adds to the log-odds of a level of the node asked about, to what those before it add. */
  function waterfall(evidence, against, asked) {
    const others = evidence.map((e, at) => (at === asked ? null : e));
    if (asked >= nodes.length) return null;
    const logs = Array.from(answer(others).shares[asked], Math.log);
    const [ours, runnerUp] = bestTwo(logs);
    const theirs = against === null || against === ours ? runnerUp : against;
    if (theirs === null) return null;
    const odds = (shares) => (shares[ours] === shares[theirs] ? 0 : Math.log(shares[ours]) - Math.log(shares[theirs]));
    const so = evidence.map(() => null);
    const steps = [{ name: null, odds: odds(answer(so).shares[asked]) }];
    let before = steps[0].odds;
    for (const at of order)
      if (others[at]) {
        so[at] = others[at];
        const now = odds(answer(so).shares[asked]);
        steps.push({ name: variables[at].name, odds: now === before ? 0 : now - before, at });
        before = now;
      }
    return { ours, theirs, steps, total: before };
  }

  function information(evidence, asked) {
    if (asked >= nodes.length || tree.cells * sizes[asked] > MOST_WORK) return null;
    const whole = answer(evidence).shares;
    const bits = variables.map(() => 0);
    for (let level = 0; level < sizes[asked]; level++) {
      const weight = whole[asked][level];
      if (!(weight > 0)) continue;
      const cells = new Uint8Array(sizes[asked]);
      cells[level] = 1;
      const shares = answer(evidence.map((e, at) => (at === asked ? { cells } : e))).shares;
      for (const [at, own] of shares.entries())
        for (let c = 0; c < own.length; c++) if (own[c] > 0) bits[at] += weight * own[c] * Math.log2(own[c] / whole[at][c]);
    }
    return bits.map((own, at) => ({ at, bits: Math.max(own, 0) })).filter(({ at }) => at !== asked && !evidence[at]);
  }

  /** The likeliest levels of all nodes together; numbers are summed out. */
  function likeliest(evidence) {
    const found = collected(evidence, true);
    return found && new Map(tree.trace(found.pots).entries());
  }

  return {
    variables, order, asked: doc.asked, answer, logEvidence, waterfall, information, likeliest,
    possible: (evidence) => collected(evidence) !== null,
    reasons: "nodes",
  };
}

/** Documents that say which earlier one they are like have all that they do not say from that one. */
function alike(docs) {
  const found = [];
  for (const doc of docs) found.push("like" in doc ? { ...found[doc.like], ...doc } : doc);
  return found;
}

function readLeaf(leaf, sizes) {
  const groups = leaf.scope.reduce((product, node) => product * sizes[node], 1);
  const logs = unpacked(leaf.logs);
  return { ...leaf, groups, logs, size: logs.length / groups, form: leaf.form && readFormula(leaf.form) };
}

/** What evidence of a number says in every configuration of the nodes above it. */
function leafLogs(leaf, e) {
  return Float64Array.from({ length: leaf.groups }, (_, group) => {
    const own = leaf.logs.subarray(group * leaf.size, (group + 1) * leaf.size);
    if ("value" in e) return leaf.form ? density(leaf, e.value, group) : own[barOf(leaf.edges, e.value)];
    return logSum(own.filter((_, c) => e.cells[c]));
  });
}

function normalised(values) {
  let total = 0;
  for (const value of values) total += value;
  return values.map((value) => value / total);
}

function makeTree(doc, sizes) {
  const cliques = doc.cliques;
  const counts = cliques.map((clique) => clique.reduce((product, node) => product * sizes[node], 1));
  const cells = counts.reduce((sum, count) => sum + count, 0);
  const borders = cliques.map((clique, c) => (doc.above[c] < 0 ? [] : clique.filter((node) => cliques[doc.above[c]].includes(node))));
  const kept = new Map();
  let room = MOST_KEPT;

  /** For every cell of a clique, the cell of a smaller scope that it lies in. */
  function placesIn(c, scope) {
    const key = `${c}:${scope}`;
    if (kept.has(key)) return kept.get(key);
    const clique = cliques[c];
    const strides = clique.map((node) => {
      const at = scope.indexOf(node);
      return at < 0 ? 0 : scope.slice(at + 1).reduce((product, other) => product * sizes[other], 1);
    });
    const found = new Int32Array(counts[c]);
    const digits = new Int32Array(clique.length);
    let place = 0;
    for (let cell = 0; cell < found.length; cell++) {
      found[cell] = place;
      for (let at = clique.length - 1; at >= 0; at--) {
        place += strides[at];
        if (++digits[at] < sizes[clique[at]]) break;
        place -= strides[at] * digits[at];
        digits[at] = 0;
      }
    }
    if ((room -= found.length) > 0) kept.set(key, found);
    return found;
  }

  const homes = new Map();
  /** The smallest clique that holds a scope. */
  function homeOf(scope) {
    const key = String(scope);
    if (!homes.has(key)) {
      const holding = cliques.map((_, c) => c).filter((c) => scope.every((node) => cliques[c].includes(node)));
      homes.set(key, holding.reduce((best, c) => (counts[c] < counts[best] ? c : best)));
    }
    return homes.get(key);
  }

  function multiply(pots, scope, table) {
    const c = homeOf(scope);
    const places = placesIn(c, scope);
    const pot = pots[c];
    for (let cell = 0; cell < pot.length; cell++) pot[cell] *= table[places[cell]];
  }

  function margin(pots, scope, c = homeOf(scope), most = false) {
    const places = placesIn(c, scope);
    const pot = pots[c];
    const found = new Float64Array(scope.reduce((product, node) => product * sizes[node], 1));
    if (most) for (let cell = 0; cell < pot.length; cell++) found[places[cell]] = Math.max(found[places[cell]], pot[cell]);
    else for (let cell = 0; cell < pot.length; cell++) found[places[cell]] += pot[cell];
    return found;
  }

  /** Every clique tells the one above it; messages are divided by their largest numbers. Null where nothing is left. */
  function up(pots, most) {
    const messages = [];
    let log = 0;
    for (let c = cliques.length - 1; c >= 0; c--) {
      const message = margin(pots, borders[c], c, most);
      const top = message.reduce((a, b) => Math.max(a, b), 0);
      if (!(top > 0)) return null;
      messages[c] = message;
      if (doc.above[c] < 0) {
        log += Math.log(top);
        continue;
      }
      const places = placesIn(doc.above[c], borders[c]);
      const pot = pots[doc.above[c]];
      let largest = 0;
      for (let cell = 0; cell < pot.length; cell++) largest = Math.max(largest, (pot[cell] *= message[places[cell]] / top));
      log += Math.log(top);
      if (largest > 1e-50 || largest === 0) continue;
      for (let cell = 0; cell < pot.length; cell++) pot[cell] /= largest;
      log += Math.log(largest);
    }
    return { messages, log };
  }

  function down(pots, messages) {
    for (let c = 0; c < cliques.length; c++) {
      if (doc.above[c] < 0) continue;
      const sent = margin(pots, borders[c], doc.above[c]);
      const ratio = sent.map((value, place) => (messages[c][place] > 0 ? value / messages[c][place] : 0));
      const places = placesIn(c, borders[c]);
      const pot = pots[c];
      for (let cell = 0; cell < pot.length; cell++) pot[cell] *= ratio[places[cell]];
    }
  }

  /** After a way up with the likeliest levels below: the likeliest level of every node. */
  function trace(pots) {
    const levels = new Int32Array(sizes.length).fill(-1);
    cliques.forEach((clique, c) => {
      const places = placesIn(c, borders[c]);
      const border = borders[c].reduce((place, node) => place * sizes[node] + levels[node], 0);
      let best = -1;
      for (let cell = 0; cell < pots[c].length; cell++)
        if (places[cell] === border && (best < 0 || pots[c][cell] > pots[c][best])) best = cell;
      for (let at = clique.length - 1; at >= 0; at--) {
        levels[clique[at]] = best % sizes[clique[at]];
        best = Math.floor(best / sizes[clique[at]]);
      }
    });
    return levels;
  }

  const base = counts.map((count) => new Float64Array(count).fill(1));
  return { base, cells, multiply, margin, up, down, trace };
}
