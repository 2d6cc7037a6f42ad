// What was done, newest first, as it happens; or grouped by session or run.
import { useEffect, useMemo, useRef, useState } from '../vendor/hooks.mjs';
import { query, save } from '../api.mjs';
import { hear } from '../live.mjs';
import { change, place } from '../place.mjs';
import { Empty, Fault, html, Loading, Shown, useAction, useAnswer, useTitle } from '../part/shown.mjs';
import { Check, Choice, Fold, More, Narrowed, Search, Switch } from '../part/filters.mjs';
import { List } from '../part/list.mjs';
import { COLUMNS } from '../part/record-row.mjs';
import { Rows } from '../part/rows.mjs';
import { plural } from '../format.mjs';
import { Grouped } from './grouped.mjs';
import { Record } from './record.mjs';

const QUIET_MAX = 20; // records among which calls are looked for
const FRESH_MAX = 500; // new records above the first page, or waiting; then the list begins anew

const TYPES = ['tool_call', 'policy_decision', 'server_change', 'tool_change', 'token_change', 'system'];
const STATUSES = ['pending', 'success', 'error', 'blocked', 'cancelled', 'interrupted', 'unknown'];
const CLASSES = ['read', 'write', 'destructive'];
const ACCESSES = ['read', 'write', 'delete', 'unknown'];
const PERIODS = [['15m', 'last 15 minutes'], ['1h', 'last hour'], ['24h', 'last day'], ['7d', 'last week']];
const PERIOD_MS = { '15m': 900_000, '1h': 3_600_000, '24h': 86_400_000, '7d': 604_800_000 };
const GROUPS = [['', 'list'], ['session', 'by session'], ['run', 'by run']];
const CHOICES = ['status', 'agent', 'server', 'since', 'effective_class', 'intent_type', 'type'];
const MORE = ['target_resource', 'under', 'access', 'session_id', 'tool', 'containers'];
const FURTHER = ['request_id', 'target_system', 'start_time', 'end_time'];
const FILTERS = ['type', 'status', 'intent_type', 'effective_class', 'q', 'agent', 'server', ...MORE, ...FURTHER];

export function Activity() {
  useTitle('Activity');
  const { values } = place.value;
  const [isPaused, setPaused] = useState(false);
  const given = Object.fromEntries(FILTERS.filter((name) => values[name]).map((name) => [name, values[name]]));
  const key = JSON.stringify({ ...given, since: values.since, group: values.group });
  // A period is counted from when it was chosen, so that the list stays one list.
  const filters = useMemo(() => ({ ...since(values.since), ...given }), [key]);
  const View = values.group ? Grouped : Records;
  return html`
    <div class="head"><h1>Activity</h1><div class="buttons">
      <${Switch} name="group" label="Group" options=${GROUPS} fallback="" />
      <button aria-pressed=${isPaused} onClick=${() => setPaused(!isPaused)} title="New records wait while the list is paused">${isPaused ? 'Resume' : 'Pause'}</button>
      <${Export} filters=${filters} /></div></div>
    <${Filters} />
    <${Narrowed} names=${FURTHER} />
    <${View} key=${key} filters=${filters} isNarrowed=${key !== '{}'} none=${(near) => html`<${None} isNarrowed=${key !== '{}'} near=${near} />`} isPaused=${isPaused} by=${values.group} open=${values.open} />
    ${values.open && html`<${Record} key=${values.open} id=${values.open} onClose=${() => change({ open: '' })} />`}`;
}

const since = (period) => (PERIOD_MS[period] ? { start_time: new Date(Date.now() - PERIOD_MS[period]).toISOString() } : {});

function Filters() {
  const { answer: agents } = useAnswer('/agents', []);
  const { answer: servers } = useAnswer('/servers', ['server']);
  return html`<div class="filters">
    <${Search} label="Search" hint="tool, server, reason, error or target" isFirst />
    <${Fold} names=${CHOICES}>
      <${Choice} name="status" label="Status" options=${STATUSES} />
      <${Choice} name="agent" label="Agent" options=${agentNames(agents?.agents ?? [])} />
      <${Choice} name="server" label="Server" options=${(servers?.servers ?? []).map(({ name }) => [name, name])} />
      <${Choice} name="since" label="Period" options=${PERIODS} />
      <${Choice} name="effective_class" label="Class" options=${CLASSES} />
      <${Choice} name="intent_type" label="Declared" options=${CLASSES} />
      <${Choice} name="type" label="Type" options=${TYPES} />
    <//>
    <${More} names=${MORE}>
      <${Search} name="target_resource" label="Resource" hint="name, * for any text" />
      <${Search} name="under" label="Under" hint="folder or other container" />
      <${Check} name="containers" label="Containers" text="also what contains it" />
      <${Choice} name="access" label="Access" options=${ACCESSES} />
      <${Search} name="session_id" label="Session" hint="id, or its end" />
      <${Search} name="tool" label="Tool" hint="name" />
    <//>
  </div>`;
}

// Agents by name alone, which is all of their sessions, then each session.
function agentNames(agents) {
  const names = agents.map(({ name }) => name);
  const bases = [...new Set(names.map((name) => name.split('#')[0]))];
  return [...new Set([...bases, ...names])].map((name) => [name, name]);
}

function Records({ filters, isNarrowed, none, isPaused, open }) {
  const [, setTurn] = useState(0);
  const [error, setError] = useState(null);
  const [isLoaded, setLoaded] = useState(false);
  const rows = useRef(null);
  rows.current ??= new Rows(filters);
  // New records wait here while somebody reads further down, while the list is paused, or while it
  // begins anew: rows must not move away from their reader.
  const waiting = useRef([]);
  const isBehind = useRef(true); // more are missing than wait
  const isBeginning = useRef(false);
  const isAtTop = useRef(true);
  const paused = useRef(false);
  paused.current = isPaused;
  const show = () => setTurn((turn) => turn + 1);
  const begin = async () => {
    if (isBeginning.current) return;
    isBeginning.current = true;
    isBehind.current = false;
    try {
      const anew = new Rows(filters);
      await anew.ask(null);
      rows.current = anew;
      setLoaded(true);
      setError(null);
    } catch (fault) {
      isBehind.current = true;
      setError(fault);
      return;
    } finally {
      isBeginning.current = false;
    }
    settle();
  };
  const settle = () => {
    if (isBeginning.current || !isAtTop.current || paused.current) return show();
    for (const record of waiting.current.splice(0)) rows.current.take(record);
    if (rows.current.fresh.length > FRESH_MAX) isBehind.current = true;
    return isBehind.current ? begin() : show();
  };
  useEffect(() => {
    const ends = [hear('again', () => { isBehind.current = true; settle(); }), hear('activity', (events) => {
      for (const { record } of events) {
        if (rows.current.holder(record.id)) rows.current.take(record);
        else if (isBeginning.current || rows.current.isNew(record)) waiting.current.push(record);
      }
      if (waiting.current.length > FRESH_MAX) {
        waiting.current = [];
        isBehind.current = true;
      }
      settle();
    })];
    begin();
    return () => ends.forEach((end) => end());
  }, []);
  useEffect(() => { if (!isPaused && isLoaded) settle(); }, [isPaused]);
  const onSight = (first, last, atTop) => {
    isAtTop.current = atTop;
    if (atTop && (isBehind.current || waiting.current.length)) settle();
    Promise.all(rows.current.wanted(first, last)).then((done) => done.length && show(), setError);
  };
  const unseen = plural(new Set(waiting.current.map((record) => record.id)).size, 'new record');
  const isMore = isLoaded && (isPaused || !isAtTop.current) && (isBehind.current || waiting.current.length > 0);
  const current = rows.current;
  const toTop = () => {
    document.querySelector('.list').scrollTop = 0;
    if (paused.current) { paused.current = false; settle(); paused.current = true; }
  };
  return html`
    <${Fault} error=${error} />
    <p class="counted" role="status">${isLoaded && `${current.isExact ? '' : 'at least '}${plural(current.total, 'record')}`}
      ${isPaused && html`<span class="warn-text">paused</span>`}
      ${isMore && html`<button class="primary small" onClick=${toTop}>Show ${isBehind.current ? 'newer records' : unseen}</button>`}</p>
    ${!isLoaded && !error && html`<${Loading} lines=${12} />`}
    ${isLoaded && (isNarrowed ? current.length === 0 : isQuiet(current)) && none(current.near)}
    <div class="split">
      ${current.length > 0 && html`<${List} label="Records, newest first" columns=${COLUMNS} count=${current.length}
        rowAt=${(index) => current.find(index).record} idOf=${(record) => record.id} current=${open}
        onOpen=${(record) => change({ open: record.id })} onSight=${onSight} />`}
    </div>`;
}

// No agent has made a call: there are only a few records of the gate itself, such as sign-ins.
const isQuiet = (rows) => rows.length < QUIET_MAX
  && Array.from({ length: rows.length }, (_, index) => rows.find(index).record).every((record) => record?.type === 'system');

const None = ({ isNarrowed, near }) => isNarrowed
  ? html`<${Empty} title="No matching records">
      ${near && html`<p>Did you mean ${near.names.map((name) => html`<button class="quiet" onClick=${() => change({ [near.field]: name })}><${Shown} text=${name} /></button> `)}?</p>`}
      <p><button onClick=${clear}>Clear filters</button></p><//>`
  : html`<${Empty} title="No calls yet" command="claude mcp add countersign -- countersign mcp">
      <p>Calls appear here as soon as an agent makes them. Connect an agent:</p><//>`;

function clear() {
  change(Object.fromEntries([...FILTERS, 'since', 'group'].map((name) => [name, ''])));
}

function Export({ filters }) {
  const { isBusy, error, act } = useAction();
  const as = (format) => act(() => save('/activity/export' + query({ ...filters, format }), `activity.${format}`));
  return html`<${Fault} error=${error} />
    <button disabled=${isBusy} onClick=${() => as('jsonl')}>Export JSONL</button>
    <button disabled=${isBusy} onClick=${() => as('csv')}>Export CSV</button>`;
}
