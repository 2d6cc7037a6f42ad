// What agents did to each resource, over time: where the marks of a lane stand, and each meeting in
// one sentence. Pure: the view asks the gate and draws.
import { took } from '../format.mjs';

export const LANES_MAX = 12; // resources; more are found by search and filters

const ORDER = ['stale-read', 'write-write', 'read-write', 'unknown', 'read-read'];
const worse = (one, other) => ORDER.indexOf(one) - ORDER.indexOf(other);

// The records of an edge come meeting by meeting, in the order of its resources.
const perMeeting = (kind) => (kind === 'stale-read' ? 3 : 2);

// The resources of these edges, those with the worst meetings first: `[{ key, system, resource, kind,
// meetings }]`, each meeting with its edge and the records behind it.
export function lanes(edges) {
  const found = new Map();
  for (const edge of edges) {
    const each = perMeeting(edge.kind);
    edge.resources.forEach((resource, at) => {
      const key = `${edge.system} ${resource}`;
      const lane = found.get(key) ?? { key, system: edge.system, resource, kind: edge.kind, agents: new Set(), meetings: [] };
      if (worse(edge.kind, lane.kind) < 0) lane.kind = edge.kind;
      lane.agents.add(edge.from).add(edge.to);
      lane.meetings.push({ edge, container: edge.containers?.[at], records: edge.records.slice(at * each, (at + 1) * each) });
      found.set(key, lane);
    });
  }
  for (const lane of found.values()) lane.meetings.sort((one, other) => worse(one.edge.kind, other.edge.kind));
  return [...found.values()].sort((one, other) => worse(one.kind, other.kind)
    || other.meetings.length - one.meetings.length || (one.key < other.key ? -1 : 1));
}

// The touches of a resource among records, oldest first.
export function touches(lane, records) {
  const found = [];
  for (const record of records) {
    const touch = record.targets.find(({ system, resource }) => system === lane.system && resource === lane.resource);
    if (touch) found.push({ id: record.id, agent: record.agent.name, access: touch.access, status: record.status, at: Date.parse(record.timestamp) });
  }
  return found.sort((one, other) => one.at - other.at);
}

const DEEDS = { read: 'read', write: 'wrote', unknown: 'may have changed' };
const deed = (touch) => DEEDS[touch.access] ?? DEEDS.unknown;

// A meeting in one sentence, as parts: strings, and agents as `{ agent }`. Null if a record of it is
// not at hand.
export function sentence(meeting, known) {
  const met = meeting.records.map((id) => known.get(id));
  if (met.length < 2 || met.some((touch) => !touch)) return null;
  const [first, second, third] = met;
  const gap = took(second.at - first.at);
  const start = [{ agent: second.agent }, ` ${deed(second)} it ${gap} after `, { agent: first.agent }, ` ${deed(first)} it`];
  if (third) return [...start, '; ', { agent: third.agent }, ` then wrote over it, ${took(third.at - second.at)} later.`];
  if (first.access === 'read' && second.access === 'write') return [...start, ', so what ', { agent: first.agent }, ' knows of it is out of date.'];
  if (first.access === 'write' && second.access === 'write') return [...start, ', and may have written over it.'];
  return [...start, '.'];
}

export const inWords = (parts) => parts.map((part) => part.agent ?? part).join('');

// The same number for the same agent, whatever else is shown.
export function numbered(names) {
  return new Map([...new Set(names)].sort().map((name, at) => [name, at % 12]));
}

// Where marks stand: `x` from 0 to 1 within the period; a row for each agent of the lane.
export function placed(list, [from, to]) {
  const rows = [...new Set(list.map((touch) => touch.agent))].sort();
  const span = Math.max(1, to - from);
  return { rows, marks: list.map((touch) => ({ ...touch, x: (touch.at - from) / span, row: rows.indexOf(touch.agent) })) };
}

// The period that all lanes share.
export function period(lists) {
  const times = lists.flat().map((touch) => touch.at);
  if (!times.length) return [0, 1];
  const [from, to] = [times.reduce((a, b) => Math.min(a, b)), times.reduce((a, b) => Math.max(a, b))];
  const room = Math.max(500, (to - from) * 0.02);
  return [from - room, to + room];
}
