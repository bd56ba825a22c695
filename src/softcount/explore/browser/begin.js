// What the file holds is read, and the page begins.

const held = JSON.parse(document.getElementById("model").textContent);
window.softcount = startPage(starEngine(held.model), held);
