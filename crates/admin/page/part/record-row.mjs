// A record as a row: when, how it went, which tool, by whom, and above all on what.
import { useEffect, useState } from '../vendor/hooks.mjs';
import { get, path } from '../api.mjs';
import { command, isShell } from './change.mjs';
import { isNarrow } from './list.mjs';
import { Ago, Class, html, Shown, State, Target, words } from './shown.mjs';
import { took } from '../format.mjs';
import { plain } from '../text.mjs';

export const COLUMNS = [
  { name: 'When', width: '104px', class: 'when', cell: (r) => html`<${Ago} time=${r.timestamp} short=${isNarrow()} dated />` },
  { name: 'Status', width: '108px', class: 'status', cell: (r) => html`<${State} word=${r.status} />` },
  { name: 'Tool', width: '19%', class: 'tool', cell: (r) => html`<${Tool} record=${r} />` },
  { name: 'Class', width: '116px', class: 'wide', cell: (r) => html`<${Class} word=${r.metadata.effective_class} />` },
  { name: 'Target', class: 'wide', cell: (r) => html`<${Matter} record=${r} />` },
  { name: 'Agent', width: '17%', class: 'wide', cell: (r) => html`<${Shown} text=${r.agent.name} max=${80} />` },
  { name: 'Duration', width: '84px', class: 'right wide', cell: (r) => lasted(r) },
];

// What was refused or only reported has no duration.
export const lasted = (record) => took(record.duration_ms || null);

export const nameOf = (record) => (record.tool_name ? `${record.server_name}:${record.tool_name}` : record.server_name || words(record.type));

function Tool({ record }) {
  return html`<span class="two-lines"><span class="strong"><${Shown} text=${nameOf(record)} max=${120} /></span>
    ${isNarrow() && html`<span class="faint second"><${Matter} record=${record} /></span>`}</span>`;
}

// What was touched or run, else what it was for; and why it was refused or failed.
function Matter({ record }) {
  const { targets, target, error_code: code, metadata } = record;
  const more = targets.length - 1;
  const reason = metadata.intent?.reason ?? metadata.decision ?? (record.tool_name ? '' : words(metadata.tool_variant));
  return html`<span class="matter">
    ${code && html`<span class=${record.status === 'blocked' ? 'warn-text' : 'bad-text'}>${code}</span>`}
    ${isShell(record.tool_name) ? html`<${ShellCommand} id=${record.id} reason=${reason} />`
      : target ? html`<${Target} text=${target.resource} />`
        : html`<span class="faint rest"><${Shown} text=${reason} max=${120} /></span>`}
    ${more > 0 && html`<span class="faint">+${more}</span>`}</span>`;
}

// Lists leave arguments out, so the commands of visible rows are fetched, a few at a time.
const ASKED_MAX = 4;
const KEPT_MAX = 1_000;
const known = new Map();
const queue = [];
let asked = 0;

function askNext() {
  while (asked < ASKED_MAX && queue.length) {
    const { id, tell } = queue.pop();
    asked += 1;
    get('/activity' + path(id)).then((record) => command(record.arguments), () => null).then((found) => {
      if (known.size >= KEPT_MAX) known.delete(known.keys().next().value);
      known.set(id, found);
      asked -= 1;
      tell(found);
      askNext();
    });
  }
}

export function ShellCommand({ id, reason = '' }) {
  const [text, setText] = useState(known.get(id));
  useEffect(() => {
    if (known.has(id)) return undefined;
    const waiting = { id, tell: setText };
    queue.push(waiting);
    askNext();
    // Rows that have left the sight are not asked about.
    return () => { waiting.tell = () => {}; const at = queue.indexOf(waiting); if (at >= 0) queue.splice(at, 1); };
  }, [id]);
  if (!text) return html`<span class="faint rest"><${Shown} text=${reason} max=${120} /></span>`;
  return html`<code class="rest" title=${plain(text, 1_000)}><span class="faint">$ </span>${text.slice(0, 300)}</code>`;
}
