// Agents that touched the same thing: a graph, a table that says the same, and from each edge the
// calls behind it.
import { useEffect, useState } from '../vendor/hooks.mjs';
import { get, path, query } from '../api.mjs';
import { change, link, place } from '../place.mjs';
import { Ago, Class, Empty, Fault, html, Shown, State, useAnswer, useTitle } from '../part/shown.mjs';
import { Beside } from '../part/dialog.mjs';
import { Choice, Switch } from '../part/filters.mjs';
import { Form, Graph } from '../part/graph.mjs';
import { KINDS, STRANDS_MAX, strands, WORDS } from '../part/layout.mjs';
import { List } from '../part/list.mjs';
import { count, exact, plural, took } from '../format.mjs';

const WINDOWS = ['10s', '1m', '5m', '15m', '30m', '1h', '3h', '6h', '12h', '24h'];
const WINDOW_WORDS = ['10 seconds', '1 minute', '5 minutes', '15 minutes', '30 minutes', '1 hour', '3 hours', '6 hours', '12 hours', '24 hours'];
const USUAL = WINDOWS.indexOf('1h');
const SINCE = [['1h', 'last hour'], ['24h', 'last day'], ['7d', 'last week']];
const SINCE_MS = { '1h': 3_600_000, '24h': 86_400_000 };
const RECORDS_MAX = 24; // of one edge, looked at one by one

export function Contention() {
  useTitle('Contention');
  const { values } = place.value;
  const since = values.since ?? '7d';
  const [start, setStart] = useState('');
  useEffect(() => { setStart(SINCE_MS[since] ? new Date(Date.now() - SINCE_MS[since]).toISOString() : ''); }, [since]);
  const search = query({ window: values.window ?? '1h', kind: values.kind, system: values.system, containers: values.containers, start_time: start });
  const { answer, error } = useAnswer('/contention' + search, ['activity'], 2_000);
  const edges = answer?.edges ?? [];
  const chosen = values.edge === undefined ? undefined : edges[Number(values.edge)];
  const open = (number) => change({ edge: number });
  return html`
    <div class="head"><h1>Contention</h1><${Switch} name="since" label="How far back" options=${SINCE} fallback="7d" /></div>
    <p class="lead">Agents that touched the same resource shortly after one another. Arrows point from the agent that came first to the one that came after.</p>
    <div class="filters"><${Window} /><${Choice} name="kind" label="Kind" options=${KINDS.map((kind) => [kind, WORDS[kind]])} /><${Containers} /></div>
    <${Fault} error=${error} />
    ${answer && edges.length === 0 && html`<${Empty} title="No contention found" command="countersign contention --window 24h">
      <p>No two agents touched the same resource within this window. A longer window finds more. On the command line:</p><//>`}
    ${edges.length > 0 && html`
      <${Graph} edges=${edges} current=${values.edge === undefined ? undefined : Number(values.edge)} onOpen=${open} />
      ${strands(edges).length >= STRANDS_MAX && html`<p class="faint">The graph shows the worst ${STRANDS_MAX}; the table lists all.</p>`}
      <p class="counted">${plural(answer.edges_total, 'edge')} between ${plural(answer.nodes_total, 'agent')}</p>`}
    <div class="split">
      ${edges.length > 0 && html`<${Table} edges=${edges} current=${values.edge} onOpen=${open} />`}
      ${chosen && html`<${Edge} key=${values.edge} edge=${chosen} asked=${search} onClose=${() => change({ edge: undefined })} />`}
    </div>`;
}

function Window() {
  const named = WINDOWS.indexOf(place.value.values.window);
  const at = named < 0 ? USUAL : named;
  const [shown, setShown] = useState(at);
  useEffect(() => setShown(at), [at]);
  return html`<label class="field window"><span>Within <output>${WINDOW_WORDS[shown]}</output> of each other</span>
    <input type="range" min="0" max=${WINDOWS.length - 1} value=${shown} aria-valuetext=${WINDOW_WORDS[shown]}
      onInput=${(event) => setShown(Number(event.target.value))}
      onChange=${(event) => change({ window: WINDOWS[Number(event.target.value)], edge: undefined })} /></label>`;
}

// A switch for folders and their files, repositories and their issues.
function Containers() {
  const chosen = place.value.values.containers === 'true';
  return html`<label class="field check"><span>Containers</span><span class="checked"><input type="checkbox" checked=${chosen}
    onChange=${(event) => change({ containers: event.target.checked ? 'true' : undefined, edge: undefined })} /> a folder and its files count as one</span></label>`;
}

const COLUMNS = [
  { name: 'What', width: 'min(276px, 40vw)', class: 'kind', cell: (e) => html`<${Form} kind=${e.kind} />` },
  { name: 'First', class: 'tool', cell: (e) => html`<span class="two-lines"><${Shown} text=${e.from} max=${80} /><span class="second faint"><${Shown} text=${e.to} max=${80} /></span></span>` },
  { name: 'Then', class: 'wide', cell: (e) => html`<${Shown} text=${e.to} max=${80} />` },
  { name: 'Resource', width: '24%', class: 'wide', cell: (e) => html`<${Shown} text=${e.resources[0] ?? ''} max=${80} />${e.containers?.length > 0 && html` <span class="faint">in <${Shown} text=${e.containers[0]} max=${60} /></span>`}${e.resources_total > 1 && html` <span class="faint">and ${count(e.resources_total - 1)} more</span>`}` },
  { name: 'System', width: '110px', class: 'wide', cell: (e) => html`<${Shown} text=${e.system} max=${40} />` },
  { name: 'Meetings', width: '86px', class: 'right wide', cell: (e) => count(e.meetings) },
  { name: 'Closest', width: '92px', class: 'right', cell: (e) => took(e.smallest_gap_ms) },
  { name: 'Last', width: '92px', class: 'wide', cell: (e) => html`<${Ago} time=${e.last} />` },
];

function Table({ edges, current, onOpen }) {
  const numbered = edges.map((edge, number) => ({ ...edge, number }));
  return html`<section class="edges" aria-label="Edges"><${List} label="Edges, worst first" columns=${COLUMNS} count=${numbered.length}
    rowAt=${(index) => numbered[index]} idOf=${(edge) => String(edge.number)} current=${current} onOpen=${(edge) => onOpen(edge.number)} /></section>`;
}

// An edge and the calls behind it.
function Edge({ edge, asked, onClose }) {
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
    ${story.length > 0 && html`<h3>What happened</h3><p class="story">${story.map((sentence) => html`<${Shown} text=${sentence} max=${1200} />${' '}`)}</p>`}
    <h3>The calls behind it</h3>
    <${Fault} error=${error} />
    ${records && html`<ul class="calls">${records.map((record) => html`<li key=${record.id}><a href=${link('activity', { open: record.id })}>
      <span class="strong"><${Shown} text=${`${record.server_name}:${record.tool_name}`} max=${100} /></span>
      <span><${State} word=${record.status} /> <${Class} word=${record.metadata.effective_class} /></span>
      <span class="faint"><${Shown} text=${record.agent.name} max=${80} /> · <${Ago} time=${record.timestamp} /> · ${exact(record.timestamp)}</span></a></li>`)}</ul>`}
  <//>`;
}
