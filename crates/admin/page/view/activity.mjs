// What was done, newest first, as it happens. The records lie in pages, of which only those near
// the sight are kept: each can be asked for again. New ones stand above them.
import { useEffect, useRef, useState } from '../vendor/hooks.mjs';
import { get, query, save } from '../api.mjs';
import { hear } from '../live.mjs';
import { change, place } from '../place.mjs';
import { Ago, Class, Empty, Fault, html, Shown, State, useAction, useTitle, words } from '../part/shown.mjs';
import { Choice, Narrowed, Search } from '../part/filters.mjs';
import { List } from '../part/list.mjs';
import { plural, took } from '../format.mjs';
import { Record } from './record.mjs';

const PAGE = 100;
const PAGES_KEPT = 20;
const QUIET_MAX = 20; // records among which calls are looked for
const FRESH_MAX = 500; // new records above the first page, or waiting; then the list begins anew

const TYPES = ['tool_call', 'policy_decision', 'server_change', 'tool_change', 'token_change', 'system'];
const STATUSES = ['pending', 'success', 'error', 'blocked', 'cancelled', 'interrupted'];
const CLASSES = ['read', 'write', 'destructive'];
const FURTHER = ['server', 'tool', 'agent', 'session_id', 'request_id',
  'target_system', 'target_resource', 'start_time', 'end_time'];
const FILTERS = ['type', 'status', 'intent_type', 'effective_class', 'q', ...FURTHER];

// Rows of a list that is asked for piece by piece.
class Rows {
  constructor(filters) {
    this.filters = filters;
    this.fresh = [];
    this.pages = [];
    this.newest = ''; // the first record of the first page
    this.next = undefined; // the cursor of the page after the last; null at the end
    this.total = 0;
    this.isExact = true;
    this.asked = new Set();
    this.tick = 0;
  }

  get length() {
    return this.fresh.length + this.pages.reduce((sum, page) => sum + page.length, 0);
  }

  // The record at an index, or the page that holds it.
  find(index) {
    if (index < this.fresh.length) return { record: this.fresh[index] };
    let start = this.fresh.length;
    for (const page of this.pages) {
      if (index < start + page.length) return { page, record: page.rows?.[index - start] ?? null };
      start += page.length;
    }
    return { record: null };
  }

  async ask(page) {
    const cursor = page ? page.cursor : this.next;
    if (cursor === null || this.asked.has(cursor)) return;
    this.asked.add(cursor);
    try {
      const answer = await get('/activity' + query({ ...this.filters, limit: PAGE, cursor }));
      if (page) page.rows = answer.activities;
      else this.add(cursor, answer);
    } finally {
      this.asked.delete(cursor);
    }
  }

  add(cursor, answer) {
    if (this.pages.length === 0) this.newest = answer.activities[0]?.id ?? '';
    this.pages.push({ cursor, rows: answer.activities, length: answer.activities.length, seen: 0 });
    this.next = answer.next_cursor;
    this.total = answer.total;
    this.isExact = answer.total_is_exact;
  }

  // Which pages are needed for these rows; the ones looked at longest ago are let go.
  wanted(first, last) {
    this.tick += 1;
    const needed = new Set();
    for (let index = first; index < last; index += 20) needed.add(this.find(index).page);
    needed.add(this.find(last - 1).page);
    needed.delete(undefined);
    for (const page of needed) page.seen = this.tick;
    const kept = this.pages.filter((page) => page.rows).sort((a, b) => b.seen - a.seen);
    for (const page of kept.slice(PAGES_KEPT)) page.rows = null;
    const asked = [...needed].filter((page) => !page.rows).map((page) => this.ask(page));
    if (last + PAGE / 2 >= this.length && this.next) asked.push(this.ask(null));
    return asked;
  }

  // Whether a record belongs above all that were asked for. One that has changed further down, on a
  // page that was not looked at, does not.
  isNew(record) {
    return record.id > this.newest && fits(record, this.filters);
  }

  // Has a record that is new or has changed.
  take(record) {
    const known = this.holder(record.id);
    if (known) {
      known.rows[known.at] = record;
    } else if (this.isNew(record)) {
      const at = this.fresh.findIndex((other) => other.id < record.id);
      this.fresh.splice(at < 0 ? this.fresh.length : at, 0, record);
      this.total += 1;
    }
  }

  holder(id) {
    for (const rows of [this.fresh, ...this.pages.map((page) => page.rows ?? [])]) {
      const at = rows.findIndex((record) => record.id === id);
      if (at >= 0) return { rows, at };
    }
    return null;
  }
}

// The filters of the gate, for what comes in live.
function fits(record, filters) {
  const meta = record.metadata;
  const agent = record.agent;
  const same = {
    type: record.type, status: record.status, server: record.server_name, tool: record.tool_name,
    effective_class: meta.effective_class, intent_type: meta.intent?.operation_type,
    session_id: record.session_id, request_id: record.request_id,
  };
  for (const [name, value] of Object.entries(same)) {
    if (filters[name] && filters[name] !== value) return false;
  }
  const { target_system: system, target_resource: resource } = filters;
  const isTarget = (target) => (!system || target.system === system) && (!resource || target.resource === resource);
  if ((system || resource) && !record.targets.some(isTarget)) return false;
  const names = [agent.name, agent.name.split('#')[0], agent.client, agent.token];
  if (filters.agent && !names.includes(filters.agent)) return false;
  if (filters.start_time && record.timestamp < filters.start_time) return false;
  if (filters.end_time && record.timestamp >= filters.end_time) return false;
  const texts = [record.tool_name, record.server_name, meta.intent?.reason, record.error_message,
    ...record.targets.flatMap((target) => [target.system, target.resource])];
  const wanted = filters.q?.toLowerCase();
  return !wanted || texts.some((text) => text?.toLowerCase().includes(wanted));
}

const COLUMNS = [
  { name: 'When', width: '96px', class: 'when', cell: (r) => html`<${Ago} time=${r.timestamp} />` },
  { name: 'Status', width: '116px', class: 'status', cell: (r) => html`<${State} word=${r.status} />` },
  { name: 'Tool', class: 'tool', cell: (r) => html`<${Tool} record=${r} />` },
  { name: 'Class', width: '120px', class: 'wide', cell: (r) => html`<${Class} word=${r.metadata.effective_class} />` },
  { name: 'Agent', class: 'wide', cell: (r) => html`<${Shown} text=${r.agent.name} max=${80} />` },
  { name: 'Target or reason', class: 'wide', cell: (r) => html`<${Matter} record=${r} />` },
  { name: 'Duration', width: '84px', class: 'right wide', cell: (r) => took(r.duration_ms) },
];

function Tool({ record }) {
  const name = record.tool_name ? `${record.server_name}:${record.tool_name}` : record.server_name;
  return html`<span class="two-lines"><span class="strong"><${Shown} text=${name || words(record.type)} max=${120} /></span>
    <span class="faint second"><${Shown} text=${record.agent.name} max=${60} /></span></span>`;
}

// What a reader wants to know next: why it was refused, else what it touched or was for.
function Matter({ record }) {
  if (record.error_code) return html`<span class=${record.status === 'blocked' ? 'warn-text' : 'bad-text'}>${record.error_code}</span>`;
  const more = record.targets.length - 1;
  if (record.target) return html`<${Shown} text=${record.target.resource} max=${120} />${more > 0 && html` <span class="faint">and ${more} more</span>`}`;
  return html`<span class="faint"><${Shown} text=${record.metadata.intent?.reason ?? record.metadata.decision ?? ''} max=${120} /></span>`;
}

export function Activity() {
  useTitle('Activity');
  const { values } = place.value;
  const filters = Object.fromEntries(FILTERS.filter((name) => values[name]).map((name) => [name, values[name]]));
  const key = JSON.stringify(filters);
  return html`
    <div class="head"><h1>Activity</h1><${Export} filters=${filters} /></div>
    <div class="filters">
      <${Search} label="Search" hint="tool, server, reason, error or target" isFirst />
      <${Choice} name="status" label="Status" options=${STATUSES} />
      <${Choice} name="intent_type" label="Declared" options=${CLASSES} />
      <${Choice} name="effective_class" label="Class" options=${CLASSES} />
      <${Choice} name="type" label="Type" options=${TYPES} />
    </div>
    <${Narrowed} names=${FURTHER} />
    <${Records} key=${key} filters=${filters} open=${values.open} />`;
}

function Records({ filters, open }) {
  const [, setTurn] = useState(0);
  const [error, setError] = useState(null);
  const [isLoaded, setLoaded] = useState(false);
  const rows = useRef(null);
  rows.current ??= new Rows(filters);
  // New records wait here while somebody reads further down, or while the list begins anew: rows must
  // not move away from their reader.
  const waiting = useRef([]);
  const isBehind = useRef(true); // more are missing than wait
  const isBeginning = useRef(false);
  const isAtTop = useRef(true);
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
    if (isBeginning.current || !isAtTop.current) return show();
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
  const onSight = (first, last, atTop) => {
    isAtTop.current = atTop;
    if (atTop && (isBehind.current || waiting.current.length)) settle();
    Promise.all(rows.current.wanted(first, last)).then((done) => done.length && show(), setError);
  };
  const unseen = plural(new Set(waiting.current.map((record) => record.id)).size, 'new record');
  const isMore = isLoaded && !isAtTop.current && (isBehind.current || waiting.current.length > 0);
  const current = rows.current;
  const isNarrowed = Object.keys(filters).length > 0;
  const close = () => change({ open: '' });
  const toTop = () => { document.querySelector('.list').scrollTop = 0; };
  return html`
    <${Fault} error=${error} />
    <p class="counted" role="status">${isLoaded ? `${current.isExact ? '' : 'at least '}${plural(current.total, 'record')}` : 'Loading…'}
      ${isMore && html`<button class="primary small" onClick=${toTop}>Show ${isBehind.current ? 'newer records' : unseen}</button>`}</p>
    ${isLoaded && (isNarrowed ? current.length === 0 : isQuiet(current)) && html`<${None} isNarrowed=${isNarrowed} />`}
    <div class="split">
      ${current.length > 0 && html`<${List} label="Records, newest first" columns=${COLUMNS} count=${current.length}
        rowAt=${(index) => current.find(index).record} idOf=${(record) => record.id} current=${open}
        onOpen=${(record) => change({ open: record.id })} onSight=${onSight} />`}
      ${open && html`<${Record} key=${open} id=${open} onClose=${close} />`}
    </div>`;
}

// No agent has made a call: there are only a few records of the gate itself, such as sign-ins.
const isQuiet = (rows) => rows.length < QUIET_MAX
  && Array.from({ length: rows.length }, (_, index) => rows.find(index).record).every((record) => record?.type === 'system');

const None = ({ isNarrowed }) => isNarrowed
  ? html`<${Empty} title="No matching records"><p><button onClick=${clear}>Clear filters</button></p><//>`
  : html`<${Empty} title="No calls yet" command="claude mcp add countersign -- countersign mcp">
      <p>Calls appear here as soon as an agent makes them. Connect an agent:</p><//>`;

function clear() {
  change(Object.fromEntries(FILTERS.map((name) => [name, ''])));
}

function Export({ filters }) {
  const { isBusy, error, act } = useAction();
  const as = (format) => act(() => save('/activity/export' + query({ ...filters, format }), `activity.${format}`));
  return html`<div class="buttons"><${Fault} error=${error} />
    <button disabled=${isBusy} onClick=${() => as('jsonl')}>Export JSONL</button>
    <button disabled=${isBusy} onClick=${() => as('csv')}>Export CSV</button></div>`;
}
