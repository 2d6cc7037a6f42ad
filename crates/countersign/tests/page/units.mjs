// The parts of the page that need no browser: text, times, and where the graph's nodes stand.
import assert from 'node:assert/strict';

const page = new URL('../../../admin/page/', import.meta.url);
const { cut, named, pieces, plain } = await import(new URL('text.mjs', page));
const { ago, bytes, exact, shortId, took } = await import(new URL('format.mjs', page));
const { layout, paths, strands, STRANDS_MAX, WIDE } = await import(new URL('part/layout.mjs', page));

// What a browser would hide or obey is named; all else stays.
const shown = (text) => pieces(text).map((part) => part.text).join('');
for (const [text, expected] of [
  ['plain\ttext\n', 'plain\ttext\n'],
  ['a\u202eb', 'a⟨U+202E⟩b'],
  ['\u200b\u2066\ufeff', '⟨U+200B⟩⟨U+2066⟩⟨U+FEFF⟩'],
  ['\u001b[31m\r', '⟨U+001B⟩[31m⟨U+000D⟩'],
  ['\u{e0041}', '⟨U+E0041⟩'],
  ['\u2800\ue041\u0600\u{100041}', '⟨U+2800⟩⟨U+E041⟩⟨U+0600⟩⟨U+100041⟩'],
  ['é 漢字 🙂', 'é 漢字 🙂'],
  ['', ''],
]) assert.equal(shown(text), expected);
assert.equal(pieces('a\u202eb').filter((part) => part.isHidden).length, 1);
assert.equal(named('\u202ea'), '⟨U+202E⟩a');
assert.deepEqual(pieces('x⟨U+200B⟩').map((part) => part.isHidden), [false, true]);
assert.equal(plain('\u202e'.repeat(3), 2), '⟨U+202E⟩⟨U+202E⟩…');
assert.equal(cut('ab🙂c', 3), 'ab…', 'no half of a character is left');
assert.equal(cut('abc', 3), 'abc');

const now = Date.parse('2026-11-15T12:00:00Z');
for (const [time, expected] of [
  ['2026-11-15T11:59:58Z', 'now'],
  ['2026-11-15T11:59:43Z', '15 s ago'],
  ['2026-11-15T11:58:30Z', '1 min ago'],
  ['2026-11-15T09:30:00Z', '2 h ago'],
  ['2026-11-14T11:00:00Z', '1 day ago'],
  ['2026-11-01T12:00:00Z', '14 days ago'],
  ['2026-11-16T12:30:00Z', 'in 1 day'],
  ['2026-11-15T12:00:02Z', 'now'],
  ['no time', ''],
]) assert.equal(ago(time, now), expected);
assert.match(exact('2026-11-15T07:04:55.154Z'), /^2026-11-1[45] \d\d:\d\d:55\.154 /);
assert.deepEqual([0, 0.412, 1.35, 12.4, 1_500, 61_000, 7_200_000, null].map(took),
  ['0 ms', '0.41 ms', '1.4 ms', '12 ms', '1.5 s', '1 min 1 s', '2.0 h', '–']);
assert.deepEqual([0, 1_536, 3_145_728, null].map(bytes), ['0 B', '1.5 KB', '3.0 MB', '–']);
assert.equal(shortId('urn:receipt:01a1de05-f636-7275-a785-685f5814b426'), '685f5814b426');

// The same graph is drawn the same way, in whatever order its edges come.
const edge = (from, to, kind, resources) => ({ from, to, kind, system: 's', resources });
const edges = [
  edge('b', 'a', 'write-write', ['/x', '/y']),
  edge('a', 'c', 'stale-read', ['/y']),
  edge('c', 'b', 'read-write', ['/z']),
];
const place = layout(strands(edges));
assert.deepEqual(layout(strands([...edges].reverse())), place);
assert.equal(place.agents.length, 3);
assert.equal(place.resources.length, 3);
const rows = place.agents.map((node) => node.y);
assert.equal(new Set(rows).size, 3, 'no two stand on each other');
for (const strand of strands(edges)) {
  const { first, second } = paths(strand, place, WIDE, 0);
  for (const path of [first, second]) assert.doesNotMatch(path, /NaN|undefined/);
}
const many = Array.from({ length: 500 }, (_, at) => edge(`a${at}`, 'b', 'write-write', ['/x']));
assert.equal(strands(many).length, STRANDS_MAX, 'it stays readable');
assert.deepEqual(layout([]).agents, []);
process.exit(0);
