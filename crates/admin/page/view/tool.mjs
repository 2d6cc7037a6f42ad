// One tool as a reviewer sees it: what was approved and what is there now, side by side, with
// everything visible that its text would hide.
import { Block, Class, Empty, Fault, html, Loading, Named, Shown, State, useAnswer, words } from '../part/shown.mjs';
import { Action, Beside, Decision } from '../part/dialog.mjs';
import { path, post } from '../api.mjs';
import { link } from '../place.mjs';
import { count, plural, shortHash } from '../format.mjs';
import { readable } from '../text.mjs';

export function Review({ server, name, kind, onClose, onDecided }) {
  // Other things than tools are found among the items of their server; instructions have no name.
  const isTool = kind === 'tool';
  const asked = isTool ? '/tools' + path(server, name) : '/servers' + path(server, 'items');
  const { answer, error, look } = useAnswer(asked, ['tool', 'server']);
  const item = isTool ? answer : answer?.items.find((found) => found.kind === kind && found.name === name);
  const decided = () => { look(); onDecided(); };
  const title = name ? html`<${Shown} text=${`${server}:${name}`} max=${400} />` : html`<${Shown} text=${server} />: ${kind}`;
  return html`<${Beside} title=${title} onClose=${onClose}>
    <${Fault} error=${error} />
    ${!answer && !error && html`<${Loading} />`}
    ${answer && !item && html`<${Empty} title="It is no longer listed" />`}
    ${item && html`<${Whole} item=${item} server=${server} name=${name} kind=${kind} decided=${decided} />`}
  <//>`;
}

// What it is and says, without decisions.
export function Item({ item }) {
  return html`<${Verdict} item=${item} /><${Text} item=${item} />`;
}

const Verdict = ({ item }) => html`
    <p class="verdict"><${State} word=${item.status} /> ${item.class && html`<${Class} word=${item.class} />`}
      ${item.change && html`<span class="faint">${item.change === 'new' ? 'new: nobody has approved it yet' : 'changed since it was approved'}</span>`}</p>
    ${(item.warnings ?? []).map((warning) => html`<p class="notice warn"><strong>${words(warning.kind)}</strong> <${Shown} text=${warning.text} max=${2000} /></p>`)}`;

const Text = ({ item }) => html`
    ${item.diff && html`<h3>${item.change === 'new' ? 'Text' : 'Approved text and current text'}</h3><${SideBySide} lines=${item.diff} isNew=${item.change === 'new'} />`}
    ${!item.diff && html`<h3>Definition</h3><${Block} text=${item.visible ?? readable(item.definition)} label="Definition" />`}`;

function Whole({ item, server, name, kind, decided }) {
  const waits = item.status === 'pending_approval';
  return html`
    <${Verdict} item=${item} />
    <div class="buttons"><${Decide} item=${item} server=${server} name=${name} kind=${kind} waits=${waits} decided=${decided} /></div>
    ${waits && item.change_hash && html`<${Alike} item=${item} server=${server} name=${name} kind=${kind} decided=${decided} />`}
    ${item.remediation && !waits && html`<p class="faint"><${Shown} text=${item.remediation} max=${1000} /></p>`}
    <${Text} item=${item} />
    ${(item.targets ?? []).length > 0 && html`<h3>Targets</h3><${Targets} rules=${item.targets} />`}
    <dl class="facts">
      <dt>Fingerprint</dt><dd><code title=${item.fingerprint}>${shortHash(item.fingerprint)}</code></dd>
      ${item.approved_fingerprint && html`<dt>Approved</dt><dd><code title=${item.approved_fingerprint}>${shortHash(item.approved_fingerprint)}</code></dd>`}
      ${item.call_with && html`<dt>Call with</dt><dd><code>${item.call_with}</code></dd>`}
      ${kind === 'tool' && html`<dt>Calls</dt><dd><a href=${link('activity', { server, tool: name })}>show records</a></dd>`}
    </dl>`;
}

// The rules that name the resources of calls, in the order in which they are tried.
function Targets({ rules }) {
  const texts = (rule) => [...rule.resource, ...rule.reads.map((text) => `${text} (read)`)];
  return html`<table><thead><tr><th scope="col">resource</th><th scope="col">system</th><th scope="col">origin</th></tr></thead>
    <tbody>${rules.map((rule) => html`<tr>
      <td>${texts(rule).length ? texts(rule).map((text) => html`<div><code><${Shown} text=${text} max=${600} /></code></div>`) : 'none'}</td>
      <td><${Shown} text=${rule.system} /></td><td><${Shown} text=${rule.origin} /></td></tr>`)}</tbody></table>`;
}

// Bound to what was read here: if it changes meanwhile, the gate refuses.
const approving = (server, items, decided) => async () => {
  await post('/servers' + path(server, 'approve-items'), { items });
  decided();
};

// Other items of the server in which the same lines changed in the same places: read once, they are
// decided about once.
function Alike({ item, server, name, kind, decided }) {
  const { answer } = useAnswer('/servers' + path(server, 'items') + '?pending=true', ['tool', 'server']);
  const alike = (answer?.items ?? []).filter((other) => other.change_hash === item.change_hash && !(other.kind === kind && other.name === name));
  if (!alike.length) return null;
  const items = [{ kind, name, fingerprint: item.fingerprint }, ...alike.map((other) => ({ kind: other.kind, name: other.name, fingerprint: other.fingerprint }))];
  return html`<p class="notice">The same change waits in ${plural(alike.length, 'other item')}: <${Shown} text=${alike.map((other) => other.name || other.kind).join(', ')} max=${1000} /></p>
    <div class="buttons"><${Decision} label=${`Approve this change in all ${count(items.length)}`} work=${approving(server, items, decided)}
      question=${`Approve the same change in ${items.length} items of '${server}'? Their text reaches models then.`} /></div>`;
}

function Decide({ item, server, name, kind, waits, decided }) {
  const approve = approving(server, [{ kind, name, fingerprint: item.fingerprint }], decided);
  const to = (verb) => async () => { await post('/tools' + path(server, name, verb)); decided(); };
  if (waits) {
    return html`<${Decision} label="Approve" tone="primary" work=${approve}
      question=${`Approve this text of '${name || kind}'? It can then reach models, and agents can call the tool.`} />`;
  }
  if (kind !== 'tool') return null;
  if (item.status === 'disabled_by_user') return html`<${Action} label="Enable" work=${to('enable')} />`;
  if (item.status === 'callable') return html`<${Action} label="Disable" work=${to('disable')} />`;
  return null;
}

// Pairs what was removed with what was added in its place.
export function pairs(lines) {
  const rows = [];
  let removed = [];
  let added = [];
  const flush = () => {
    for (let at = 0; at < Math.max(removed.length, added.length); at += 1) {
      rows.push({ old: removed[at] ?? null, new: added[at] ?? null, isChanged: true });
    }
    [removed, added] = [[], []];
  };
  for (const line of lines) {
    if (line.mark === 'removed') removed.push(line.text);
    else if (line.mark === 'added') added.push(line.text);
    else {
      flush();
      rows.push(line.mark === 'skipped' ? { skipped: line.lines } : { old: line.text, new: line.text });
    }
  }
  flush();
  return rows;
}

export function SideBySide({ lines, isNew }) {
  if (isNew) {
    return html`<pre class="block" tabindex="0" role="region" aria-label="Text">${lines.map((line) => html`<${Named} text=${line.text ?? ''} />${'\n'}`)}</pre>`;
  }
  return html`<div class="diff-box" tabindex="0" role="region" aria-label="Old and new text"><table class="diff">
    <thead><tr><th scope="col">approved</th><th scope="col">now</th></tr></thead>
    <tbody>${pairs(lines).map((row) => row.skipped
      ? html`<tr class="skipped"><td colspan="2">${row.skipped} unchanged lines</td></tr>`
      : html`<tr><${Side} text=${row.old} sign="−" tone=${row.isChanged ? 'old' : ''} /><${Side} text=${row.new} sign="+" tone=${row.isChanged ? 'new' : ''} /></tr>`)}
    </tbody></table></div>`;
}

const Side = ({ text, sign, tone }) => text === null
  ? html`<td class="none"></td>`
  : html`<td class=${tone}>${tone && html`<span class="sign">${sign}<span class="sr">${tone === 'old' ? ' removed: ' : ' added: '}</span></span>`}<${Named} text=${text} /></td>`;
