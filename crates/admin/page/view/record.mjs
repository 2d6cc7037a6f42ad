// One record, whole: what was meant, what was decided, what was sent and what came back.
import { Block, Class, Command, Copy, Fault, html, Loading, Shown, State, useAnswer, When, words } from '../part/shown.mjs';
import { Beside } from '../part/dialog.mjs';
import { command, isShell, replaced, texts } from '../part/change.mjs';
import { Change } from '../part/diff.mjs';
import { lasted, nameOf } from '../part/record-row.mjs';
import { Payload } from '../part/tree.mjs';
import { bytes, shortId } from '../format.mjs';
import { path } from '../api.mjs';
import { link } from '../place.mjs';

export function Record({ id, onClose }) {
  const { answer: record, error } = useAnswer('/activity' + path(id), ['activity']);
  return html`<${Beside} title=${record ? html`<${Shown} text=${nameOf(record)} max=${400} />` : 'Record'} onClose=${onClose}>
    <${Fault} error=${error} />
    ${!record && !error && html`<${Loading} />`}
    ${record && html`<${Whole} record=${record} />`}
  <//>`;
}

function Whole({ record }) {
  const { metadata: meta, agent, targets } = record;
  return html`
    <p class="verdict"><${State} word=${record.status} /> <${Class} word=${meta.effective_class} />
      ${meta.unverified && html`<span class="faint" title="The tool has neither a read-only nor a destructive hint">unverified</span>`}</p>
    ${record.error_code && html`<p class=${record.status === 'blocked' ? 'notice warn' : 'notice bad'}>
      <strong>${record.error_code}</strong> <${Shown} text=${record.error_message} max=${4000} /></p>`}
    ${meta.warnings.map((warning) => html`<p class="notice warn"><${Shown} text=${warning} max=${1000} /></p>`)}
    <${Deed} record=${record} />
    <h3>Intent</h3>
    ${meta.intent
      ? html`<dl class="facts">
          <dt>Operation</dt><dd><${Shown} text=${meta.intent.operation_type} /></dd>
          <dt>Reason</dt><dd><${Shown} text=${meta.intent.reason ?? '–'} max=${4000} /></dd>
          <dt>Sensitivity</dt><dd><${Shown} text=${meta.intent.data_sensitivity} /></dd></dl>`
      : html`<p class="faint">No intent was declared.</p>`}
    <h3>Facts</h3>
    <dl class="facts">
      <dt>When</dt><dd><${When} time=${record.timestamp} /></dd>
      <dt>Duration</dt><dd>${lasted(record)}</dd>
      <dt>Agent</dt><dd><a href=${link('activity', { agent: agent.name })}><${Shown} text=${agent.name} /></a></dd>
      <dt>Token</dt><dd><${Shown} text=${agent.token} /></dd>
      ${targets.length > 0 && html`<dt>${targets.length === 1 ? 'Target' : 'Targets'}</dt><dd>${targets.map((target) => html`<div><a href=${link('activity', { target_system: target.system, target_resource: target.resource })}>
        <${Shown} text=${target.resource} max=${4096} /></a> <${Copy} text=${target.resource} what="the target" isSmall /> <span class="faint">in <${Shown} text=${target.system} />, ${target.access === 'unknown' ? 'read or written' : target.access}</span></div>`)}</dd>`}
      ${record.target_basis && html`<dt>${targets.length > 0 ? 'Found by' : 'No target'}</dt><dd><${Shown} text=${record.target_basis} max=${400} /></dd>`}
      ${[record.joined_to, ...(record.joined_from ?? [])].filter(Boolean).map((id) => html`<dt>Same call</dt><dd><a href=${link('activity', { open: id })}><code>${shortId(id)}</code></a>${id === record.joined_to && ' (counted there)'}</dd>`)}
      ${record.server_name && record.tool_name && record.type !== 'server_change' && html`<dt>Tool</dt><dd><a href=${link('servers', { server: record.server_name, tool: record.tool_name })}>show the tool</a></dd>`}
      <dt>Receipt</dt><dd>${record.receipt_id
        ? html`<a href=${link('receipts', { receipt: record.receipt_id })}><code>${shortId(record.receipt_id)}</code></a>` : html`<span class="faint">none</span>`}</dd>
      <dt>Trace</dt><dd>${meta.trace_id ? html`<code>${meta.trace_id}</code>` : html`<span class="faint">–</span>`}</dd>
      <dt>Session</dt><dd>${record.session_id
        ? html`<a href=${link('activity', { session_id: record.session_id })}><code><${Shown} text=${record.session_id} /></code></a>` : '–'}</dd>
      <dt>Request</dt><dd><code><${Shown} text=${record.request_id ?? '–'} /></code></dd>
      <dt>Source</dt><dd>${record.source}, ${record.surface}${meta.tool_variant && html`, <code>${meta.tool_variant}</code>`}</dd>
      <dt>Type</dt><dd>${words(record.type)}</dd>
      <dt>Record</dt><dd><code>${record.id}</code> <${Copy} text=${record.id} what="the id" isSmall /></dd>
    </dl>
    <h3>Arguments <span class="faint">${bytes(meta.arguments_bytes)}</span></h3>
    <${Payload} value=${record.arguments} label="Arguments" />
    <h3>Result <span class="faint">${bytes(meta.response_bytes)}</span></h3>
    ${record.response_truncated && html`<p class="notice">Truncated: only the beginning was kept.</p>`}
    <${Result} value=${record.response} />`;
}

// What was run or changed, ahead of everything else.
function Deed({ record }) {
  const run = isShell(record.tool_name) ? command(record.arguments) : null;
  if (run) return html`<h3>Command</h3><${Command} text=${run} />`;
  const changes = replaced(record.tool_name, record.arguments);
  if (!changes.length) return null;
  return html`<h3>${changes[0].before === null ? 'Written text' : 'Change'}</h3>
    ${changes.map(({ before, after }, at) => html`<${Change} key=${at} before=${before} after=${after} />`)}`;
}

// Texts as they are, and all of it as a tree.
function Result({ value }) {
  const parts = texts(value);
  if (!parts) return html`<${Payload} value=${value} label="Result" />`;
  return html`${parts.map((text, at) => html`<div key=${at} class="payload"><div class="payload-tools"><${Copy} text=${text} what="Result" /></div><${Block} text=${text} label="Result" /></div>`)}
    <details><summary>As JSON</summary><${Payload} value=${value} label="Result as JSON" /></details>`;
}
