// The parts of the page that need no browser: text, times, colours, differences, what was pasted, and
// where the marks of pictures stand.
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';

// The place in the page is read when its module is loaded.
globalThis.location = { hash: '' };
globalThis.addEventListener = () => {};

const page = new URL('../../../admin/page/', import.meta.url);
const { cut, halves, named, pieces, plain } = await import(new URL('text.mjs', page));
const { ago, bytes, date, exact, shortId, took } = await import(new URL('format.mjs', page));
const { bundles, curve, layout, LINES_MAX, columns } = await import(new URL('part/layout.mjs', page));
const { command, compared, isShell, replaced, texts, written } = await import(new URL('part/change.mjs', page));
const { inWords, lanes, period, placed, sentence, touches } = await import(new URL('part/lanes.mjs', page));
const { contains, fits, fitsPattern } = await import(new URL('part/fits.mjs', page));
const { matching, recordId } = await import(new URL('part/match.mjs', page));
const { needs } = await import(new URL('part/needs.mjs', page));
const { pasted, words } = await import(new URL('part/pasted.mjs', page));
const { summary } = await import(new URL('part/receipt.mjs', page));
const { axis, bar, events, ticks } = await import(new URL('part/waterfall.mjs', page));

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
assert.equal(date('2026-11-14T12:00:01Z', false, now), '', 'the last day needs no date');
assert.match(date('2026-11-12T12:30:00Z', false, now), /^1[123] Nov, \d\d:\d\d$/);
assert.match(date('2026-11-12T12:30:00Z', true, now), /^1[123] Nov$/);
assert.equal(date('no time', false, now), '');
assert.match(exact('2026-11-15T07:04:55.154Z'), /^2026-11-1[45] \d\d:\d\d:55\.154 /);
assert.deepEqual([0, 0.412, 1.35, 12.4, 1_500, 61_000, 7_200_000, null].map(took),
  ['0 ms', '0.41 ms', '1.4 ms', '12 ms', '1.5 s', '1 min 1 s', '2.0 h', '–']);
assert.deepEqual([0, 1_536, 3_145_728, null].map(bytes), ['0 B', '1.5 KB', '3.0 MB', '–']);
assert.equal(shortId('urn:receipt:01a1de05-f636-7275-a785-685f5814b426'), '685f5814b426');

// What comes in live is filtered as by the gate: containers as in its `container` module, patterns with
// `*` for any text.
for (const [system, container, content, expected] of [
  ['filesystem', '/a', '/a/b', true], ['filesystem', '/', '/a', true], ['filesystem', '/a', '/a', false],
  ['filesystem', '/a', '/ab', false], ['filesystem', '/a/notes', '/a/notes.md', false],
  ['filesystem', '/a/b', '/a/b@2', false], ['github.com', 'owner/repo', 'owner/repo#1', true],
  ['github.com', 'owner/repo', 'owner/repo:src/main.rs', true], ['github.com', 'owner/next', 'owner/next.js', false],
  ['github.com', 'owner/repo#1', 'owner/repo#12', false], ['db', 'analytics', 'analytics.events', true],
  ['web', 'https://x.org/a', 'https://x.org/a?q=1', true], ['filesystem', '/a', '/a?b', false],
]) assert.equal(contains(system, container, content), expected, `${container} ${content}`);
for (const [pattern, name, expected] of [
  ['/a', '/a', true], ['/a', '/ab', false], ['/a*', '/ab', true], ['*.rs', '/a/b.rs', true], ['*.rs', '.rs', true],
  ['a*a', 'a', false], ['a*b*c', 'a/b/b/c', true], ['a*b*c', 'acb', false], ['*', '', true], ['**b*', 'abc', true], ['a?[b]*', 'a?[b]c', true],
]) assert.equal(fitsPattern(pattern, name), expected, `${pattern} ${name}`);
const watched = { type: 'tool_call', status: 'success', server_name: 'git', tool_name: 'push', session_id: 'mcp-5814b426', request_id: 'r9',
  timestamp: '2026-02-03T09:08:07.000Z', agent: { name: 'claude#7', client: 'claude-code', token: 'agent-token' },
  metadata: { effective_class: 'destructive' }, targets: [{ system: 'git', resource: 'a/b', access: 'write' }] };
for (const [expected, filters] of [
  [true, {}], [true, { session_id: '5814b426' }], [true, { session_id: 'mcp-' }], [false, { session_id: '426' }],
  [true, { agent: 'claude' }], [false, { agent: 'claude-code' }], [true, { target_resource: 'a/*', access: 'delete' }], [false, { target_resource: '*/c' }],
  [true, { under: 'a/', access: 'write' }], [false, { under: 'b' }], [false, { under: '/' }], [false, { access: 'read' }],
  [false, { target_resource: 'a/b#7' }], [true, { target_resource: 'a/b#7', containers: 'true' }], [true, { under: 'a/b/c', containers: 'true' }],
  [false, { target_resource: 'a/b#7', under: 'a/b/c', containers: 'true' }],
]) assert.equal(fits(watched, filters), expected, JSON.stringify(filters));

// The same graph is drawn the same way, in whatever order its edges come.
const edge = (from, to, kind, resources) => ({ from, to, kind, system: 's', resources, meetings: kind === 'stale-read' ? 2 : 3 });
const edges = [
  edge('b', 'a', 'write-write', ['/x', '/y']),
  edge('a', 'c', 'stale-read', ['/y']),
  edge('c', 'b', 'read-write', ['/z']),
];
const place = layout(bundles(edges));
assert.deepEqual(layout(bundles([...edges].reverse())), place);
assert.equal(place.agents.length, 3);
assert.equal(place.resources.length, 3);
const rows = place.agents.map((node) => node.y);
assert.equal(new Set(rows).size, 3, 'no two stand on each other');
for (const bundle of bundles(edges)) assert.doesNotMatch(curve(bundle, place, columns(1_100)), /NaN|undefined/);
const ofA = bundles(edges).find((bundle) => bundle.agent === 'a' && bundle.resource === 's /y');
assert.deepEqual([ofA.kind, ofA.meetings, ofA.numbers], ['stale-read', 5, [1, 0]], 'all meetings at a resource are one line');
const many = Array.from({ length: 500 }, (_, at) => edge(`a${at}`, 'b', 'write-write', ['/x']));
assert.equal(bundles(many).length, LINES_MAX, 'it stays readable');
assert.deepEqual(layout([]).agents, []);

// The file of a path stays readable.
for (const [text, head, tail] of [
  ['/srv/shop/src/main.rs', '/srv/shop/src', '/main.rs'],
  ['/main.rs', '', '/main.rs'],
  ['octo/shop#12', 'octo', '/shop#12'],
  ['plain', '', 'plain'],
  ['/a/b/', '/a', '/b/'],
  ['x'.repeat(60), 'x'.repeat(36), 'x'.repeat(24)],
]) assert.deepEqual(halves(text), { head, tail });

// Differences of lines.
const marks = (before, after) => compared(before, after).map(({ mark, text, lines }) => `${{ same: ' ', removed: '-', added: '+', skipped: '~' }[mark]}${text ?? lines}`);
assert.deepEqual(marks('a\nb\nc\n', 'a\nx\nc\n'), [' a', '-b', '+x', ' c']);
assert.deepEqual(marks('', 'a'), ['+a']);
assert.deepEqual(marks('a\n', ''), ['-a']);
assert.deepEqual(marks('same', 'same'), ['~1']);
assert.deepEqual(marks('1\n2\n3\n4\n5\n6\nx', '1\n2\n3\n4\n5\n6\ny'), ['~3', ' 4', ' 5', ' 6', '-x', '+y']);
const long = (word) => Array.from({ length: 3_000 }, (_, at) => `${word} ${at}`).join('\n');
assert.equal(compared(long('a'), long('b')).length, 6_000, 'a comparison is bounded');
assert.deepEqual(replaced('Edit', { file_path: '/a', old_string: 'x', new_string: 'y' }), [{ before: 'x', after: 'y' }]);
assert.deepEqual(replaced('edit_file', { path: '/a', edits: [{ oldText: 'x', newText: 'y' }, { oldText: 'z', newText: '' }] }), [{ before: 'x', after: 'y' }, { before: 'z', after: '' }]);
assert.deepEqual(replaced('Write', { file_path: '/a', content: 'y' }), [{ before: null, after: 'y' }]);
assert.deepEqual(replaced('send_mail', { text: 'y' }), [], 'no file is written');
assert.deepEqual(replaced('Write', null), []);
assert.equal(written('Write', { path: '/a', content: 'y' }), 'y');
assert.equal(written('Edit', { path: '/a', old_string: 'x', new_string: 'y' }), null);
assert.deepEqual(texts({ content: [{ type: 'text', text: 'a' }] }), ['a']);
assert.equal(texts({ content: [{ type: 'image' }] }), null);
assert.deepEqual([isShell('Bash'), isShell('run_shell_command'), isShell('Read')], [true, true, false]);
assert.deepEqual([command({ command: 'ls' }), command({ command: ['ls', '-l'] }), command({ path: 'x' })], ['ls', 'ls -l', null]);

// Meetings in lanes and in sentences.
const at = (seconds) => new Date(now + seconds * 1_000).toISOString();
const record = (id, agent, access, seconds) => ({ id, agent: { name: agent }, status: 'success', timestamp: at(seconds), targets: [{ system: 'filesystem', resource: '/main.rs', access }] });
const met = { ...edge('claude', 'codex', 'stale-read', ['/main.rs', '/b']), system: 'filesystem', id: 'e', records: ['1', '2', '3', '4', '5', '6'] };
const both = { ...edge('codex', 'claude', 'write-write', ['/main.rs']), system: 'filesystem', id: 'f', records: ['2', '3'] };
const [lane, other] = lanes([both, met]);
assert.deepEqual([lane.resource, lane.kind, lane.meetings.map((meeting) => meeting.edge.id)], ['/main.rs', 'stale-read', ['e', 'f']], 'the worst first');
assert.deepEqual(other.meetings[0].records, ['4', '5', '6'], 'each meeting has its own records');
const list = touches(lane, [record('3', 'claude', 'write', 40), record('2', 'codex', 'write', 31), record('1', 'claude', 'read', 0)]);
const known = new Map(list.map((touch) => [touch.id, touch]));
assert.equal(inWords(sentence(lane.meetings[0], known)), 'codex wrote it 31.0 s after claude read it; claude then wrote over it, 9.0 s later.');
assert.equal(inWords(sentence(lane.meetings[1], known)), 'claude wrote it 9.0 s after codex wrote it, and may have written over it.');
assert.equal(sentence(other.meetings[0], known), null, 'no sentence about a record that is not loaded');
const span = period([list]);
const drawn = placed(list, span);
assert.deepEqual(drawn.rows, ['claude', 'codex']);
assert.ok(drawn.marks.every(({ x }) => x > 0 && x < 1));
assert.deepEqual(period([[]]), [0, 1]);

// A run on one axis.
const step = { started_at: at(1), ended_at: at(4), texts: [{ timestamp: at(2), kind: 'text', text: 'b' }], calls: [{ timestamp: at(1.5), duration_ms: 100 }, { timestamp: at(3), duration_ms: null }] };
const time = axis({ started_at: at(0), ended_at: at(10), status: 'success', steps: [step] }, 0);
assert.deepEqual(time, { from: now, to: now + 10_000 });
assert.deepEqual(bar(time, now + 1_000, now + 4_000), { left: 10, width: 30 });
assert.ok(bar(time, now + 10_000, now + 10_000).left < 100, 'the end can be seen');
assert.deepEqual(events(step).map(({ kind }) => kind), ['call', 'text', 'call']);
assert.deepEqual(ticks(time), [0, 2_000, 4_000, 6_000, 8_000]);
assert.equal(axis({ started_at: at(0), ended_at: null, status: 'running', steps: [] }, now + 500).to, now + 500);
assert.equal(axis({ started_at: at(0), ended_at: null, status: 'interrupted', steps: [step] }, now + 99_000).to, now + 4_000);

// What people paste.
const only = (text) => pasted(text).servers[0];
assert.deepEqual(only('npx -y @modelcontextprotocol/server-filesystem ~/notes'), { name: 'filesystem', command: 'npx', args: ['-y', '@modelcontextprotocol/server-filesystem', '~/notes'] });
assert.deepEqual(only('TOKEN=a=b uvx mcp-server-git --repo "my repo"'), { name: 'git', command: 'uvx', args: ['mcp-server-git', '--repo', 'my repo'], env: { TOKEN: 'a=b' } });
assert.deepEqual(only('claude mcp add gh -- npx -y server-github'), { name: 'gh', command: 'npx', args: ['-y', 'server-github'] });
assert.deepEqual(only('https://mcp.linear.app/sse'), { name: 'linear', url: 'https://mcp.linear.app/sse' });
assert.deepEqual(only('http://127.0.0.1:9000/mcp').name, 'local');
assert.deepEqual(only('{"mcpServers": {"a b": {"command": "x", "args": []}}}'), { name: 'a-b', command: 'x', args: [] });
assert.deepEqual(only('"notes": {"command": "x"},'), { name: 'notes', command: 'x' });
assert.deepEqual(only('{"serverUrl": "https://docs.example.com/mcp"}'), { name: 'example', url: 'https://docs.example.com/mcp' });
assert.equal(pasted('{"servers": {"a": {"command": "x"}, "b": {"url": "http://h"}}}').servers.length, 2);
for (const text of ['{"a": 1}', '{"a"', "npx 'open", 'TOKEN=x']) assert.ok(pasted(text).error, text);
assert.deepEqual(pasted('  '), { servers: [] });
assert.deepEqual(words(`a\\ b 'c "d' "e\\"f" ''`), ['a b', 'c "d', 'e"f', '']);

// Ways to places.
const items = [{ kind: 'tool', name: 'github:get_issue' }, { kind: 'server', name: 'github' }, { kind: 'view', name: 'Activity' }];
assert.deepEqual(matching(items, 'git').map(({ kind }) => kind), ['tool', 'server']);
assert.deepEqual(matching(items, 'issue get').map(({ kind }) => kind), ['tool']);
assert.deepEqual(matching(items, 'server').map(({ name }) => name), ['github']);
assert.deepEqual(matching(items, 'nothing'), []);
assert.equal(recordId(' urn:receipt:01a1de05-f636-7275-a785-685f5814b426'), '01a1de05-f636-7275-a785-685f5814b426');
assert.equal(recordId('01a1de05'), null);

// What needs a person, the worst first, each with its cure.
const well = { config: { state: 'ok' }, ledger: { state: 'ok', notices: [] } };
assert.deepEqual(needs({ status: well, servers: [{ name: 'a', state: 'ready', pending: 0 }], chains: [], bypasses: 0, stale: 0 }), []);
const found = needs({
  status: { config: { state: 'rejected', error: 'line 1' }, ledger: { state: 'failing', last_error: 'full', notices: ['lost'] } },
  servers: [{ name: 'p', state: 'ready', pending: 2 }, { name: 'd', state: 'error', error: 'gone' }, { name: 'q', state: 'quarantined', quarantined: true, pending: 1 }, { name: 'l', state: 'needs_login' }],
  chains: [{ id: 'c', status: 'damaged' }, { id: 'o', status: 'open' }], bypasses: 1, stale: 2,
});
assert.deepEqual(found.map(({ tone, name }) => `${tone} ${name}`), ['bad The ledger', 'bad The config file', 'bad Chain c', 'bad 1 action', 'bad d', 'warn The ledger', 'warn p', 'warn q', 'warn l', 'warn 2 times']);
assert.ok(found.every(({ href, command: run }) => href || run), 'each has a cure');

// A receipt in words.
const receipt = { issuer: { id: 'did:key:z', runtime: { server: 'notes', tool: 'write_note', agent_id: 'codex#1', reason: 'to try it' } }, credentialSubject: {
  action: { type: 'data.api.write', risk_level: 'medium', timestamp: at(0), target: { system: 'notes', resource: 'x' } },
  outcome: { status: 'failure', error: 'TOOL_BLOCKED' }, chain: { chain_id: 'c', sequence: 3, previous_receipt_hash: 'sha256:1' } } };
assert.equal(summary(JSON.stringify(receipt)).sentence, 'codex#1 called notes:write_note on notes x, saying “to try it”. It failed: TOOL_BLOCKED.');
for (const text of ['noise', '{}', 'null', '{"credentialSubject": 1}']) assert.equal(summary(text), null, text);

// One sheet of tokens: no other sheet has colours or sizes of type of its own, and every text can be
// read on every ground that it stands on, in both themes (WCAG AA).
const sheet = async (name) => (await readFile(new URL(name, page), 'utf8')).replace(/\/\*[^]*?\*\//g, '');
const tokens = await sheet('tokens.css');
const style = await sheet('style.css');
assert.deepEqual(style.match(/#[0-9a-f]{3,8}\b(?=[^{}]*[;}])|\b(rgb|hsl|oklch|light-dark)\(/gi) ?? [], [], 'colours are tokens');
assert.deepEqual(style.match(/font(-size)?: [^;]*\d(px|em|rem)/g) ?? [], [], 'sizes of type are tokens');
const used = new Set([...style.matchAll(/var\((--[a-z0-9-]+)/g)].map(([, name]) => name));
const defined = new Set([...tokens.matchAll(/(--[a-z0-9-]+):/g)].map(([, name]) => name));
assert.deepEqual([...used].filter((name) => !defined.has(name)), [], 'every token that is used is defined');
const colours = Object.fromEntries([...tokens.matchAll(/--([a-z-]+): light-dark\((#[0-9a-f]{6}), (#[0-9a-f]{6})\)/g)].map(([, name, light, dark]) => [name, [light, dark]]));
const luminance = (hex) => [1, 3, 5].map((start) => parseInt(hex.slice(start, start + 2), 16) / 255)
  .map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4))
  .reduce((sum, part, index) => sum + part * [0.2126, 0.7152, 0.0722][index], 0);
const contrast = (one, two) => { const [a, b] = [luminance(one), luminance(two)].sort((x, y) => y - x); return (a + 0.05) / (b + 0.05); };
const pairs = [
  ...['text', 'faint', 'accent', 'good', 'warn', 'bad'].flatMap((text) => ['ground', 'card'].map((ground) => [text, ground, 4.5])),
  ...['text', 'faint'].map((text) => [text, 'raised', 4.5]),
  ...['good', 'warn', 'bad', 'accent'].map((text) => [text, `${text}-soft`, 4.5]),
  ['on-accent', 'accent', 4.5], ['text', 'accent-soft', 4.5], ['text', 'good-soft', 4.5], ['text', 'bad-soft', 4.5],
  ...['read', 'write', 'destructive', 'write-write', 'stale-read', 'read-write'].map((area) => [area, 'card', 3]),
];
for (const [text, ground, least] of pairs) {
  for (const theme of [0, 1]) {
    const ratio = contrast(colours[text][theme], colours[ground][theme]);
    assert.ok(ratio >= least, `${text} on ${ground}, ${['light', 'dark'][theme]}: ${ratio.toFixed(2)}`);
  }
}
process.exit(0);
