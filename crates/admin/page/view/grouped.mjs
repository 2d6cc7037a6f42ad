// The newest records in groups: by session, or by the run of a workflow whose step made them.
import { useEffect, useState } from '../vendor/hooks.mjs';
import { get, path, query } from '../api.mjs';
import { hear } from '../live.mjs';
import { change, link } from '../place.mjs';
import { Ago, Fault, html, Loading, Shown, State } from '../part/shown.mjs';
import { List } from '../part/list.mjs';
import { COLUMNS } from '../part/record-row.mjs';
import { count, plural } from '../format.mjs';

const PAGES_MAX = 5; // of a hundred records; older ones are found by filters
const RUNS_MAX = 20;
const LOOK_EVERY_MS = 2_000;

async function newest(filters) {
  const found = [];
  let cursor;
  let total = 0;
  let near = null;
  for (let page = 0; page < PAGES_MAX && cursor !== null; page += 1) {
    const answer = await get('/activity' + query({ ...filters, limit: 100, cursor }));
    found.push(...answer.activities);
    cursor = answer.next_cursor;
    total = answer.total;
    near = answer.near;
  }
  return { records: found, isAll: cursor === null, total, near };
}

// The runs of sessions, newest runs first.
async function runsOfSessions() {
  const { runs } = await get('/runs' + query({ limit: RUNS_MAX }));
  const whole = await Promise.all(runs.map((run) => get('/runs' + path(run.id))));
  return new Map(whole.flatMap((run) => run.steps.flatMap((step) => step.sessions.map((session) => [session, run]))));
}

export function Grouped({ filters, by, none, isPaused, open }) {
  const [found, setFound] = useState(null);
  const [error, setError] = useState(null);
  useEffect(() => {
    if (isPaused) return undefined;
    let timer = null;
    let isOver = false;
    const look = async () => {
      try {
        const [records, runs] = await Promise.all([newest(filters), by === 'run' ? runsOfSessions() : null]);
        if (!isOver) setFound({ ...records, runs });
      } catch (fault) {
        if (!isOver) setError(fault);
      }
    };
    const again = () => { timer ??= setTimeout(() => { timer = null; look(); }, LOOK_EVERY_MS); };
    const ends = ['activity', 'run', 'again'].map((kind) => hear(kind, again));
    look();
    return () => { isOver = true; clearTimeout(timer); ends.forEach((end) => end()); };
  }, [isPaused]);
  if (error) return html`<${Fault} error=${error} />`;
  if (!found) return html`<${Loading} lines=${12} />`;
  if (!found.records.length) return none(found.near);
  const groups = grouped(found, by);
  const rows = groups.flatMap((group) => [{ id: group.id, heading: Heading({ group, by }) }, ...group.records]);
  return html`<p class="counted" role="status">${plural(groups.length, 'group')} of ${found.isAll ? plural(found.records.length, 'record') : `the newest ${count(found.records.length)} of ${count(found.total)} records; filters find older ones`}${isPaused && html` <span class="warn-text">paused</span>`}</p>
    <div class="split"><${List} label="Records in groups" columns=${COLUMNS} count=${rows.length} rowAt=${(index) => rows[index]}
      idOf=${(record) => record.id} current=${open} onOpen=${(record) => change({ open: record.id })} /></div>`;
}

function grouped({ records, runs }, by) {
  const groups = new Map();
  for (const record of records) {
    const run = by === 'run' ? runs.get(record.session_id) : undefined;
    const id = (by === 'run' ? run?.id : record.session_id) ?? '';
    const group = groups.get(id) ?? { id, run, records: [] };
    group.records.push(record);
    groups.set(id, group);
  }
  return [...groups.values()];
}

function Heading({ group, by }) {
  const { id, run, records } = group;
  const number = (status) => records.filter((record) => record.status === status).length;
  const [refused, failed, unknown] = [number('blocked'), number('error'), number('unknown')];
  return html`<span class="heading-line">
    ${run ? html`<a class="strong" href=${link('runs', { run: id })}><${Shown} text=${run.workflow} max=${80} /></a> <${State} word=${run.status} />`
      : !id ? html`<span class="strong">${by === 'run' ? 'outside of runs' : 'without a session'}</span>`
        : html`<a class="strong" href=${link('activity', { session_id: id })}><${Shown} text=${records[0].agent.name} max=${80} /></a>`}
    <span class="faint">${plural(records.length, 'record')}, ${records.length > 1 && html`<${Ago} time=${records.at(-1).timestamp} dated /> to `}<${Ago} time=${records[0].timestamp} dated /></span>
    ${refused > 0 && html`<span class="warn-text">${count(refused)} refused</span>`}
    ${failed > 0 && html`<span class="bad-text">${count(failed)} failed</span>`}
    ${unknown > 0 && html`<span class="warn-text">${count(unknown)} with an unknown outcome</span>`}</span>`;
}
