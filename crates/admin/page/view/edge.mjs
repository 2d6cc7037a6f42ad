// Two agents that met: how, the calls behind it, and what one had read against what the other wrote.
import { useEffect, useState } from '../vendor/hooks.mjs';
import { get, path } from '../api.mjs';
import { link } from '../place.mjs';
import { Ago, Class, Fault, html, Loading, Shown, State } from '../part/shown.mjs';
import { replaced, texts, written } from '../part/change.mjs';
import { Change } from '../part/diff.mjs';
import { Beside } from '../part/dialog.mjs';
import { Form } from '../part/graph.mjs';
import { count, exact, took } from '../format.mjs';

const RECORDS_MAX = 24; // of one edge, looked at one by one

export function Edge({ edge, asked, onClose }) {
  const ids = edge.records.slice(0, RECORDS_MAX);
  const [records, setRecords] = useState(null);
  const [error, setError] = useState(null);
  const [story, setStory] = useState([]);
  const key = ids.join();
  useEffect(() => {
    Promise.all(ids.map((id) => get('/activity' + path(id)))).then(setRecords, setError);
    get('/contention' + path(edge.id) + asked).then((told) => setStory(told.story), setError);
  }, [key, asked]);
  return html`<${Beside} title=${html`<${Form} kind=${edge.kind} />`} onClose=${onClose}>
    ${story.length > 0 && html`<p class="story">${story.map((sentence) => html`<${Shown} text=${sentence} max=${1200} />${' '}`)}</p>`}
    <${Fault} error=${error} />
    ${!records && !error && html`<${Loading} />`}
    ${records && html`<${Differences} records=${records.slice(0, edge.kind === 'stale-read' ? 3 : 2)} />`}
    <h3>The calls behind it</h3>
    ${records && html`<ul class="calls">${records.map((record) => html`<li key=${record.id}><a href=${link('activity', { open: record.id })}>
      <span class="strong"><${Shown} text=${`${record.server_name}:${record.tool_name}`} max=${100} /></span>
      <span><${State} word=${record.status} /> <${Class} word=${record.metadata.effective_class} /></span>
      <span class="faint"><${Shown} text=${record.agent.name} max=${80} /> · <${Ago} time=${record.timestamp} /> · ${exact(record.timestamp)}</span></a></li>`)}</ul>`}
    <h3>Facts</h3>
    <dl class="facts">
      <dt>First</dt><dd><${Shown} text=${edge.from} /></dd>
      <dt>Then</dt><dd><${Shown} text=${edge.to} /></dd>
      <dt>System</dt><dd><${Shown} text=${edge.system} /></dd>
      <dt>Resources</dt><dd>${edge.resources.map((resource) => html`<div><a href=${link('activity', { target_system: edge.system, target_resource: resource })}><${Shown} text=${resource} max=${400} /></a></div>`)}
        ${edge.resources_total > edge.resources.length && html`<span class="faint">and ${count(edge.resources_total - edge.resources.length)} more</span>`}</dd>
      ${edge.containers?.length > 0 && html`<dt>Contained in</dt><dd>${[...new Set(edge.containers)].map((container) => html`<div><${Shown} text=${container} max=${400} /></div>`)}</dd>`}
      <dt>Meetings</dt><dd>${count(edge.meetings)}, the closest ${took(edge.smallest_gap_ms)} apart</dd>
      <dt>Period</dt><dd>${exact(edge.first)}<br />${exact(edge.last)}</dd>
    </dl>
  <//>`;
}

// The text that a call left its agent with: what it read, or what it wrote.
const textAfter = (record) => written(record.tool_name, record.arguments)
  ?? (record.metadata.effective_class === 'read' ? texts(record.response)?.join('\n') : null) ?? null;

// From each call of the closest meeting to the next, as far as payloads were kept.
function Differences({ records }) {
  const shown = records.slice(1).map((record, at) => difference(records[at], record)).filter(Boolean);
  return shown.map(({ title, changes }, at) => html`<div key=${at} class="difference"><h3>${title}</h3>
    ${changes.map(({ before, after }, number) => html`<${Change} key=${number} before=${before} after=${after} label=${title} />`)}</div>`);
}

function difference(first, second) {
  const [before, after] = [textAfter(first), written(second.tool_name, second.arguments)];
  const did = first.metadata.effective_class === 'read' ? 'read' : 'wrote';
  if (before !== null && after !== null) return { title: `What ${first.agent.name} ${did}, and what ${second.agent.name} wrote`, changes: [{ before, after }] };
  const changes = replaced(second.tool_name, second.arguments);
  return changes.length ? { title: `What ${second.agent.name} changed`, changes } : null;
}
