// The graph of a network: arcs behind a button for each node, which says what is likeliest there.

const SMALLEST = 0.75;

function makeGraph(graph, variables, goTo) {
  const space = "http://www.w3.org/2000/svg";
  const sheet = made("div", { class: "sheet" });
  sheet.style.width = `${graph.width}px`;
  sheet.style.height = `${graph.height}px`;
  const arcs = document.createElementNS(space, "svg");
  for (const [name, value] of Object.entries({ width: graph.width, height: graph.height, "aria-hidden": "true" })) arcs.setAttribute(name, value);
  const drawn = (kind, d) => {
    const path = document.createElementNS(space, "path");
    path.setAttribute("class", kind);
    path.setAttribute("d", d);
    arcs.append(path);
  };
  for (const arc of graph.arcs) {
    const [x, y] = arc[arc.length - 1];
    drawn("arc", `M${arc.map((point) => point.join(" ")).join("L")}`);
    drawn("head", `M${x - 4.5} ${y - 2}L${x + 4.5} ${y - 2}L${x} ${y + 7}Z`);
  }
  sheet.append(arcs);
  const nodes = graph.nodes.map(({ name, x, y, width }) => {
    const place = variables.findIndex((variable) => variable.name === name);
    const most = made("span", { class: "most" });
    const button = made("button", { type: "button", class: "node", onclick: () => goTo(place) }, made("span", { class: "name" }, name), most);
    button.disabled = place < 0;
    button.style.left = `${x}px`;
    button.style.top = `${y}px`;
    button.style.width = `${width}px`;
    sheet.append(button);
    return { place, button, most };
  });

  function show(shares, evidence, asked) {
    for (const { place, button, most } of nodes) {
      if (place < 0) continue;
      const [variable, own, e] = [variables[place], shares && shares[place], evidence[place]];
      button.classList.toggle("given", Boolean(e));
      button.classList.toggle("about", place === asked);
      if (e) most.textContent = evidenceText(variable, e);
      else if (!own) most.textContent = "";
      else if (variable.kind === "number") most.textContent = medianText(variable, own, null);
      else {
        const best = own.indexOf(Math.max(...own));
        const level = variable.cuts ? variable.levels[best].replace(/-?\d+\.\d+/g, (x) => String(Number(Number(x).toPrecision(3)))) : variable.levels[best];
        most.textContent = `${level}: ${percent(own[best])}`;
      }
      button.title = `${variable.name}: ${most.textContent}`;
    }
  }
  /** A graph that is a little too wide shrinks, as far as its letters stay readable; a wider one scrolls. */
  function fit() {
    const room = box.clientWidth;
    const scale = room ? Math.max(Math.min(room / graph.width, 1), SMALLEST) : 1;
    sheet.style.transform = `scale(${scale})`;
    sheet.style.marginRight = `${Math.min(graph.width * (scale - 1), 0)}px`;
    sheet.style.marginBottom = `${graph.height * (scale - 1)}px`;
  }
  const box = made("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": "The graph; each node leads to its card" }, sheet);
  new ResizeObserver(fit).observe(box);
  return { box, show };
}
