// Text that others wrote: characters that a browser would obey or hide are made visible.

// Controls (but for tab and line feed), zero-width and joining ones, bidi marks and isolates,
// variation selectors, tags, interlinear marks, and blanks that look like nothing or like a space.
const HIDDEN = new RegExp(
  '[\\u0000-\\u0008\\u000b-\\u001f\\u007f-\\u009f\\u00ad\\u034f\\u061c\\u115f\\u1160\\u17b4\\u17b5'
  + '\\u180b-\\u180f\\u200b-\\u200f\\u2028-\\u202e\\u2060-\\u206f\\u3164\\ufe00-\\ufe0f\\ufeff'
  + '\\uffa0\\ufff9-\\ufffb\\u{1d173}-\\u{1d17a}\\u{e0000}-\\u{e0fff}]', 'gu');

// What the gate has made visible already, in `visible` and `diff`.
const NAMED = /⟨U\+[0-9A-F]{4,6}⟩/g;

export const codePoint = (character) =>
  `⟨U+${character.codePointAt(0).toString(16).toUpperCase().padStart(4, '0')}⟩`;

// Pieces of a text: `{ text, isHidden }`.
export function pieces(text) {
  return split(text, HIDDEN, codePoint);
}

// The same for text in which the gate has named what was hidden.
export function namedPieces(text) {
  return split(text, NAMED, (name) => name);
}

function split(text, pattern, name) {
  const found = [];
  let end = 0;
  for (const match of text.matchAll(pattern)) {
    if (match.index > end) found.push({ text: text.slice(end, match.index), isHidden: false });
    found.push({ text: name(match[0]), isHidden: true });
    end = match.index + match[0].length;
  }
  if (end < text.length) found.push({ text: text.slice(end), isHidden: false });
  return found;
}

// For attributes, which hold no elements. Cut, since nobody reads a long hint.
export const plain = (text, max = 300) =>
  cut(String(text ?? ''), max).replace(HIDDEN, codePoint);

// Cut between characters, never within one.
export function cut(text, max) {
  return text.length <= max ? text : Array.from(text.slice(0, max + 1)).slice(0, -1).join('') + '…';
}

// JSON for reading. What was cut is kept as text.
export const readable = (value) =>
  typeof value === 'string' ? value : JSON.stringify(value, null, 2);
