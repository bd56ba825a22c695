// What the file holds is read, and the page begins.

const ENGINES = { star: starEngine, network: networkEngine };
const held = JSON.parse(document.getElementById("model").textContent);
window.softcount = startPage(ENGINES[held.model.kind](held.model), held);
