// Text that others wrote: characters that a browser would obey or hide are made visible.

// The same characters as in the gate, by what Unicode says of them: controls (but for tab and line
// feed), format characters, private use, separators of lines, and what is drawn as nothing.
const HIDDEN = /(?![\t\n])[\p{Cc}\p{Cf}\p{Co}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\u2800]/gu;

// These, and what the gate has made visible already, in `visible` and `diff`.
const NAMED = new RegExp(`${HIDDEN.source}|⟨U\\+[0-9A-F]{4,6}⟩`, 'gu');

const codePoint = (character) =>
  `⟨U+${character.codePointAt(0).toString(16).toUpperCase().padStart(4, '0')}⟩`;

// The text with every hidden character named, for attributes, which hold no elements.
export const named = (text) => text.replace(HIDDEN, codePoint);

// Pieces of a text: `{ text, isHidden }`.
export function pieces(text) {
  const found = [];
  let end = 0;
  for (const match of text.matchAll(NAMED)) {
    if (match.index > end) found.push({ text: text.slice(end, match.index), isHidden: false });
    found.push({ text: named(match[0]), isHidden: true });
    end = match.index + match[0].length;
  }
  if (end < text.length) found.push({ text: text.slice(end), isHidden: false });
  return found;
}

// Cut, since nobody reads a long hint.
export const plain = (text, max = 300) => named(cut(String(text ?? ''), max));

// Cut between characters, never within one.
export function cut(text, max) {
  return text.length <= max ? text : Array.from(text.slice(0, max + 1)).slice(0, -1).join('') + '…';
}

// The end of a name that must stay readable, such as that of a file, and all before it.
const TAIL_MAX = 48;
export function halves(text) {
  const characters = Array.from(text);
  const slash = text.replace(/\/+$/, '').lastIndexOf('/');
  const isShort = slash > 0 && text.length - slash <= TAIL_MAX;
  if (isShort) return { head: text.slice(0, slash), tail: text.slice(slash) };
  if (characters.length <= TAIL_MAX) return { head: '', tail: text };
  return { head: characters.slice(0, -24).join(''), tail: characters.slice(-24).join('') };
}

// JSON for reading. What was cut is kept as text.
export const readable = (value) =>
  typeof value === 'string' ? value : JSON.stringify(value, null, 2);
