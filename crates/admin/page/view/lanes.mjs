// Lanes: one for each resource that agents met at, with a mark for each touch, in the colour of its
// agent and the form of what it did, and the meetings in sentences. On a small screen the sentences
// alone. The sentences say what the picture says, so it is hidden from screen readers.
import { useEffect, useState } from '../vendor/hooks.mjs';
import { get, path, query } from '../api.mjs';
import { change, go, link } from '../place.mjs';
import { Fault, html, Loading, Shown, Target } from '../part/shown.mjs';
import { useWidth } from '../part/chart.mjs';
import { Form } from '../part/graph.mjs';
import { lanes, LANES_MAX, numbered, period, placed, sentence, touches } from '../part/lanes.mjs';
import { useNarrow } from '../part/list.mjs';
import { WORDS } from '../part/layout.mjs';
import { date, exact, moment, plural, took } from '../format.mjs';
import { cut, plain } from '../text.mjs';

const SENTENCES = 3; // of a lane, at first
const TOUCHES_MAX = 100; // of a lane: the newest
const LEFT = 176; // for the names of agents
const ROW = 17;

// The touches of a lane, and those of the meetings at the top, which may be older.
async function touchesOf(lane, start) {
  const values = { target_system: lane.system, target_resource: lane.resource, start_time: start, limit: TOUCHES_MAX };
  const { activities } = await get('/activity' + query(values));
  const known = new Set(activities.map((record) => record.id));
  const wanted = lane.meetings.slice(0, SENTENCES).flatMap((meeting) => meeting.records);
  const older = [...new Set(wanted)].filter((id) => !known.has(id));
  const fetched = await Promise.all(older.map((id) => get('/activity' + path(id)).catch(() => null)));
  return touches(lane, [...activities, ...fetched.filter(Boolean)]);
}

export function Lanes({ edges, start, onOpen }) {
  const all = lanes(edges);
  const shown = all.slice(0, LANES_MAX);
  const [known, setKnown] = useState(new Map());
  const [error, setError] = useState(null);
  const key = JSON.stringify([start, shown.map((lane) => [lane.key, lane.meetings.length, lane.meetings[0].edge.last])]);
  useEffect(() => {
    let isOver = false;
    Promise.all(shown.map(async (lane) => [lane.key, await touchesOf(lane, start)]))
      .then((found) => { if (!isOver) setKnown(new Map(found)); }, setError);
    return () => { isOver = true; };
  }, [key]);
  const lists = shown.map((lane) => known.get(lane.key) ?? []);
  const isLoaded = (lane) => known.has(lane.key) || error !== null;
  const span = period(lists);
  const colours = numbered(lists.flat().map((touch) => touch.agent));
  const isNarrow = useNarrow();
  return html`<${Fault} error=${error} />
    ${!isNarrow && html`<${Legend} />`}
    <div class="lanes">${shown.map((lane, at) => html`<${Lane} key=${lane.key} lane=${lane} list=${isLoaded(lane) ? lists[at] : null} span=${span} colours=${colours} isNarrow=${isNarrow} onOpen=${onOpen} />`)}</div>
    ${all.length > LANES_MAX && html`<p class="faint">The ${LANES_MAX} worst of ${plural(all.length, 'resource')}. Search for another, or see the graph.</p>`}`;
}

const Legend = () => html`<ul class="legend" aria-hidden="true">
  <li><svg width="14" height="14" class="agent-0 lane-mark"><circle class="mark read" cx="7" cy="7" r="4" /></svg>read</li>
  <li><svg width="14" height="14" class="agent-0 lane-mark"><rect class="mark write" x="3" y="3" width="8" height="8" /></svg>write</li>
  <li><svg width="14" height="14" class="agent-0 lane-mark"><path class="mark unknown" d="M7 2L12 7L7 12L2 7z" /></svg>read or write</li>
  <li>Colours are agents.</li></ul>`;

function Lane({ lane, list, span, colours, isNarrow, onOpen }) {
  const [isAll, setAll] = useState(false);
  const known = new Map((list ?? []).map((touch) => [touch.id, touch]));
  const told = isAll ? lane.meetings : lane.meetings.slice(0, SENTENCES);
  const more = lane.meetings.length - told.length;
  return html`<section class="card lane" aria-label=${lane.resource}>
    <div class="card-head"><h2><a href=${link('activity', { target_system: lane.system, target_resource: lane.resource })}><${Target} text=${lane.resource} /></a></h2>
      <span class="faint">${lane.system} · ${plural(lane.agents.size, 'agent')} <${Form} kind=${lane.kind} /></span></div>
    ${!list && html`<${Loading} lines=${3} />`}
    ${!isNarrow && list?.length > 0 && html`<${Picture} lane=${lane} list=${list} span=${span} colours=${colours} />`}
    ${list && html`<ul class="sentences">${told.map((meeting) => html`<li key=${meeting.edge.id} class=${meeting.edge.kind}>
      <button class="sentence" onClick=${() => onOpen(meeting.edge)}><${Sentence} meeting=${meeting} known=${known} colours=${colours} /></button></li>`)}</ul>`}
    ${more > 0 && html`<div><button class="quiet small" onClick=${() => setAll(true)}>Show ${plural(more, 'more meeting')}</button></div>`}
  </section>`;
}

function Sentence({ meeting, known, colours }) {
  const { edge, container } = meeting;
  const parts = sentence(meeting, known) ?? [{ agent: edge.from }, ' and ', { agent: edge.to }, `: ${WORDS[edge.kind]}.`];
  return html`${parts.map((part) => (part.agent === undefined ? part
    : html`<span class=${`agent-name agent-${colours.get(part.agent) ?? 11}`}><${Shown} text=${part.agent} max=${60} /></span>`))}
    ${container !== undefined && html` <span class="faint">in <${Shown} text=${container} max=${80} /></span>`}
    ${edge.meetings > 1 && html` <span class="faint">${plural(edge.meetings, 'time')}</span>`}`;
}

function Picture({ lane, list, span, colours }) {
  const [box, width] = useWidth();
  const { rows, marks } = placed(list, span);
  const height = rows.length * ROW + 24;
  const x = (part) => LEFT + part * Math.max(0, width - LEFT - 12);
  const y = (row) => row * ROW + ROW / 2 + 2;
  const at = new Map(marks.map((mark) => [mark.id, mark]));
  const ticks = [0, 0.25, 0.5, 0.75, 1];
  return html`<div ref=${box} class="lane-box"><svg class="lane-picture" width=${width} height=${height} aria-hidden="true">
    ${ticks.map((part) => html`<line class="rule" x1=${x(part)} x2=${x(part)} y1="0" y2=${height - 18} />
      <text class="tick" x=${x(part)} y=${height - 4} text-anchor=${part === 0 ? 'start' : part === 1 ? 'end' : 'middle'}>${clock(span, part)}</text>`)}
    ${rows.map((agent, row) => html`<g class=${`agent-${colours.get(agent)}`}><text class="agent-label" x=${LEFT - 10} y=${y(row) + 4} text-anchor="end"><title>${plain(agent)}</title>${plain(cut(agent, 24))}</text>
      <line class="row-line" x1=${LEFT} x2=${width - 12} y1=${y(row)} y2=${y(row)} /></g>`)}
    ${lane.meetings.filter(({ edge }) => edge.kind !== 'read-write' || lane.kind === 'read-write').map((meeting) => Thread({ meeting, at, x, y }))}
    ${marks.map((mark) => html`<g class=${`lane-mark agent-${colours.get(mark.agent)} ${mark.status === 'blocked' ? 'far' : ''}`} onClick=${() => go('activity', { open: mark.id })}>
      <title>${plain(`${mark.agent}: ${mark.access}, ${exact(mark.at)}`)}</title>${shape(mark, x(mark.x), y(mark.row))}</g>`)}
  </svg></div>`;
}

// The time at a part of a period, with as many digits as tell it from the next; of a short one that is
// over for a day, the first has the date.
function clock([from, to], part) {
  const at = from + part * (to - from);
  const isDated = part === 0 && date(new Date(at).toISOString());
  return to - from > 600_000 ? moment(at) : exact(at).slice(isDated ? 0 : 11, to - from > 10_000 ? 19 : 23);
}

const shape = ({ access }, x, y) => {
  if (access === 'read') return html`<circle class="mark read" cx=${x} cy=${y} r="4" />`;
  if (access === 'write') return html`<rect class="mark write" x=${x - 4} y=${y - 4} width="8" height="8" />`;
  return html`<path class="mark unknown" d=${`M${x} ${y - 5}L${x + 5} ${y}L${x} ${y + 5}L${x - 5} ${y}z`} />`;
};

// From the first touch of a meeting to the last.
function Thread({ meeting, at, x, y }) {
  const points = meeting.records.map((id) => at.get(id)).filter(Boolean);
  if (points.length < 2) return null;
  const d = points.map((mark, number) => `${number ? 'L' : 'M'}${x(mark.x)} ${y(mark.row)}`).join('');
  const { edge } = meeting;
  return html`<g class=${`strand ${edge.kind}`} data-edge=${edge.id} onClick=${() => change({ edge: edge.id })}>
    <title>${plain(`${WORDS[edge.kind]}: ${edge.from}, ${edge.to}, ${took(points.at(-1).at - points[0].at)}`)}</title>
    <path class="hit" d=${d} /><path class="line" d=${d} /></g>`;
}
