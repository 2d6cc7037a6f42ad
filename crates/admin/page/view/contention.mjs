// Agents that touched the same thing: lanes that show who did what to a resource and when, a graph of
// who met whom, and from each meeting the calls behind it.
import { useEffect, useState } from '../vendor/hooks.mjs';
import { query } from '../api.mjs';
import { change, place } from '../place.mjs';
import { Ago, Empty, Fault, html, Loading, Shown, Target, useAnswer, useTitle } from '../part/shown.mjs';
import { Choice, Fold, Search, Switch } from '../part/filters.mjs';
import { Form, Graph } from '../part/graph.mjs';
import { bundles, KINDS, LINES_MAX, WORDS } from '../part/layout.mjs';
import { List, useNarrow } from '../part/list.mjs';
import { count, plural, took } from '../format.mjs';
import { Edge } from './edge.mjs';
import { Lanes } from './lanes.mjs';

const WINDOWS = ['10s', '1m', '5m', '15m', '30m', '1h', '3h', '6h', '12h', '24h'];
const WINDOW_WORDS = ['10 seconds', '1 minute', '5 minutes', '15 minutes', '30 minutes', '1 hour', '3 hours', '6 hours', '12 hours', '24 hours'];
const USUAL = WINDOWS.indexOf('1h');
const SINCE = [['1h', 'last hour'], ['24h', 'last day'], ['7d', 'last week']];
const SINCE_MS = { '1h': 3_600_000, '24h': 86_400_000 };
const SHAPES = [['lanes', 'lanes'], ['graph', 'graph']];

export function Contention() {
  useTitle('Contention');
  const { values } = place.value;
  const since = values.since ?? '7d';
  const [start, setStart] = useState(SINCE_MS[since] ? null : '');
  useEffect(() => { setStart(SINCE_MS[since] ? new Date(Date.now() - SINCE_MS[since]).toISOString() : ''); }, [since]);
  const search = query({ window: values.window ?? '1h', kind: values.kind, containers: values.containers, start_time: start ?? '' });
  const { answer, error } = useAnswer(start === null ? null : '/contention' + search, ['activity'], 2_000);
  const all = answer?.edges ?? [];
  const edges = all.filter((edge) => fits(edge, values));
  const chosen = edges.find((edge) => edge.id === values.edge);
  const open = (edge) => change({ edge: edge.id });
  // A small screen has the list of sentences alone.
  const isNarrow = useNarrow();
  const isGraph = values.shape === 'graph' && !isNarrow;
  return html`
    <div class="head"><h1>Contention</h1><div class="buttons">
      ${!isNarrow && html`<${Switch} name="shape" label="Shape" options=${SHAPES} fallback="lanes" />`}
      <${Switch} name="since" label="How far back" options=${SINCE} fallback="7d" /></div></div>
    <p class="lead">${isGraph ? 'Agents that touched the same resource shortly after one another. Point at an agent or a resource to see only its meetings.'
      : 'What agents did to the same resource shortly after one another: the worst first, each meeting in one sentence.'}</p>
    <${Filters} edges=${all} />
    <${Fault} error=${error} />
    ${!answer && !error && html`<${Loading} lines=${8} />`}
    ${answer && edges.length === 0 && html`<${None} isNarrowed=${all.length > 0} />`}
    ${edges.length > 0 && html`<p class="counted" role="status">${plural(edges.length === all.length ? answer.edges_total : edges.length, 'edge')} between ${plural(new Set(edges.flatMap((edge) => [edge.from, edge.to])).size, 'agent')}</p>`}
    ${edges.length > 0 && !isGraph && html`<${Lanes} edges=${edges} start=${start} onOpen=${open} />`}
    ${edges.length > 0 && isGraph && html`
      <${Graph} edges=${edges} current=${edges.indexOf(chosen)} onOpen=${(number) => open(edges[number])} />
      ${bundles(edges).length >= LINES_MAX && html`<p class="faint">The graph shows the worst ${LINES_MAX} lines; the table lists all.</p>`}
      <${Table} edges=${edges} current=${values.edge} onOpen=${open} />`}
    ${chosen && html`<${Edge} key=${chosen.id} edge=${chosen} asked=${search} onClose=${() => change({ edge: undefined })} />`}`;
}

function fits(edge, { agent, system, q }) {
  if (agent && edge.from !== agent && edge.to !== agent) return false;
  if (system && edge.system !== system) return false;
  const wanted = q?.toLowerCase();
  return !wanted || [edge.from, edge.to, edge.system, ...edge.resources].some((text) => text.toLowerCase().includes(wanted));
}

const None = ({ isNarrowed }) => isNarrowed
  ? html`<${Empty} title="No matching meetings"><p><button onClick=${() => change({ agent: '', system: '', q: '' })}>Clear filters</button></p><//>`
  : html`<${Empty} title="No contention found" command="countersign contention --window 24h">
      <p>No two agents touched the same resource within this window. A longer window finds more. On the command line:</p><//>`;

function Filters({ edges }) {
  const named = (list) => [...new Set(list)].sort().map((name) => [name, name]);
  return html`<div class="filters">
    <${Search} label="Search" hint="resource or agent" isFirst />
    <${Fold} names=${['window', 'kind', 'agent', 'system', 'containers']}>
      <${Window} />
      <${Choice} name="kind" label="Kind" options=${KINDS.map((kind) => [kind, WORDS[kind]])} />
      <${Choice} name="agent" label="Agent" options=${named(edges.flatMap((edge) => [edge.from, edge.to]))} />
      <${Choice} name="system" label="System" options=${named(edges.map((edge) => edge.system))} />
      <${Containers} />
    <//>
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
  { name: 'What', width: 'min(266px, 40vw)', class: 'kind', cell: (e) => html`<${Form} kind=${e.kind} />` },
  { name: 'First', width: '15%', class: 'tool', cell: (e) => html`<span class="two-lines"><${Shown} text=${e.from} max=${80} /><span class="second faint"><${Shown} text=${e.to} max=${80} /></span></span>` },
  { name: 'Then', width: '15%', class: 'wide', cell: (e) => html`<${Shown} text=${e.to} max=${80} />` },
  { name: 'Resource', class: 'wide', cell: (e) => html`<span class="matter"><${Target} text=${e.resources[0] ?? ''} />${e.containers?.length > 0 && html`<span class="faint">in <${Shown} text=${e.containers[0]} max=${60} /></span>`}${e.resources_total > 1 && html`<span class="faint">+${count(e.resources_total - 1)}</span>`}</span>` },
  { name: 'System', width: '90px', class: 'wide', cell: (e) => html`<${Shown} text=${e.system} max=${40} />` },
  { name: 'Meetings', width: '86px', class: 'right wide', cell: (e) => count(e.meetings) },
  { name: 'Closest', width: '104px', class: 'right', cell: (e) => took(e.smallest_gap_ms) },
  { name: 'Last', width: '80px', class: 'wide', cell: (e) => html`<${Ago} time=${e.last} short />` },
];

function Table({ edges, current, onOpen }) {
  return html`<div class="split"><section class="edges" aria-label="Edges"><${List} label="Edges, worst first" columns=${COLUMNS} count=${edges.length}
    rowAt=${(index) => edges[index]} idOf=${(edge) => edge.id} current=${current} onOpen=${onOpen} /></section></div>`;
}
