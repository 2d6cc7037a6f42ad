// Records, fetched page by page. Only those near the visible part are kept, since any can be fetched
// again. New ones are inserted above them.
import { get, query } from '../api.mjs';
import { fits } from './fits.mjs';

const PAGE = 100;
const PAGES_KEPT = 20;

export class Rows {
  constructor(filters) {
    this.filters = filters;
    this.fresh = [];
    this.pages = [];
    this.newest = ''; // the first record of the first page
    this.next = undefined; // the cursor of the page after the last; null at the end
    this.total = 0;
    this.isExact = true;
    this.near = null; // names close to the one of a filter, if nothing is found
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
    this.near = answer.near ?? null;
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

  // True if a record belongs above all that were fetched. One that changed further down, on a page that
  // was not fetched, does not.
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
