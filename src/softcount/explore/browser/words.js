// A document to words, by the same rules as the library's.

/** The words of a text, each as often as it occurs. */
function wordsOf(text, reading) {
  if (reading.lowercase) text = text.toLowerCase();
  const [low, high] = reading.runs;
  if (reading.analyzer === "char") return runsOf([...text.replace(/\s\s+/gu, " ")], low, high, "");
  if (reading.analyzer === "char_wb") {
    const found = [];
    for (const word of text.split(/\s+/u).filter(Boolean)) {
      const padded = [" ", ...word, " "];
      if (padded.length < low) found.push(padded.join(""));
      found.push(...runsOf(padded, low, high, ""));
    }
    return found;
  }
  const stopped = new Set(reading.stopped);
  const words = (text.match(/[\p{L}\p{N}_]{2,}/gu) || []).filter((word) => !stopped.has(word));
  return low === 1 && high === 1 ? words : runsOf(words, low, high, " ");
}

function runsOf(parts, low, high, between) {
  const found = [];
  for (let n = low; n <= high; n++)
    for (let at = 0; at + n <= parts.length; at++) found.push(parts.slice(at, at + n).join(between));
  return found;
}

/** By place in the vocabulary, how often a document holds each word that the model knows. */
function wordCounts(column, text) {
  const counts = new Map();
  for (const word of wordsOf(text, column.reading)) {
    const place = column.places.get(word);
    if (place !== undefined) counts.set(place, column.once ? 1 : (counts.get(place) || 0) + 1);
  }
  return counts;
}
