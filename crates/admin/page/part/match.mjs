// Finds names by a few letters of them. Pure.

const FOUND_MAX = 12;

// Those that have every word of the text, best first: a name that begins with it, a word that does,
// then any place.
export function matching(items, text) {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  const scored = [];
  for (const item of items) {
    const name = `${item.name} ${item.kind}`.toLowerCase();
    if (words.every((word) => name.includes(word))) scored.push([score(name, words), item]);
  }
  return scored.sort(([one], [other]) => one - other).slice(0, FOUND_MAX).map(([, item]) => item);
}

function score(name, words) {
  if (!words.length) return 0;
  return words.reduce((sum, word) => {
    const at = name.indexOf(word);
    const starts = at === 0 || /[^a-z0-9]/.test(name[at - 1]);
    return sum + (at === 0 ? 0 : starts ? 1 : 2);
  }, 0);
}

// The id of a record or receipt in a text that is nothing else.
export const recordId = (text) => /^(?:urn:receipt:)?([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})$/.exec(text.trim().toLowerCase())?.[1] ?? null;
