// Numbers and times in words.
import { signal } from './vendor/signals.mjs';

// The time, for what is shown relative to it.
export const now = signal(Date.now());
setInterval(() => { now.value = Date.now(); }, 1_000);

const whole = new Intl.NumberFormat('en', { maximumFractionDigits: 0 });
export const count = (number) => whole.format(number ?? 0);

export const plural = (number, one, many = one + 's') =>
  `${count(number)} ${number === 1 ? one : many}`;

// How long ago, or how far off, roughly. Coarse, so that a row changes rarely.
export function ago(time, at = now.value) {
  const seconds = (at - Date.parse(time)) / 1_000;
  if (Number.isNaN(seconds)) return '';
  if (Math.abs(seconds) < 5) return 'now';
  return seconds > 0 ? `${span(seconds)} ago` : `in ${span(-seconds)}`;
}

function span(seconds) {
  if (seconds < 60) return `${Math.floor(seconds / 5) * 5} s`;
  if (seconds < 3_600) return `${Math.floor(seconds / 60)} min`;
  if (seconds < 86_400) return `${Math.floor(seconds / 3_600)} h`;
  return plural(Math.floor(seconds / 86_400), 'day');
}

const exactly = new Intl.DateTimeFormat('en-GB', {
  year: 'numeric', month: '2-digit', day: '2-digit', hour: '2-digit', minute: '2-digit',
  second: '2-digit', fractionalSecondDigits: 3, timeZoneName: 'short', hour12: false,
});

// `2026-11-15 07:04:55.154 UTC`, in the reader's own zone.
export function exact(time) {
  const date = new Date(time);
  if (Number.isNaN(date.getTime())) return '';
  const part = Object.fromEntries(exactly.formatToParts(date).map((p) => [p.type, p.value]));
  const day = `${part.year}-${part.month}-${part.day}`;
  return `${day} ${part.hour}:${part.minute}:${part.second}.${part.fractionalSecond} ${part.timeZoneName}`;
}

const clock = new Intl.DateTimeFormat('en-GB', { hour: '2-digit', minute: '2-digit', hour12: false });
const dayAndClock = new Intl.DateTimeFormat('en-GB', {
  day: '2-digit', month: 'short', hour: '2-digit', minute: '2-digit', hour12: false,
});
export const hour = (time) => clock.format(new Date(time));
export const moment = (time) => dayAndClock.format(new Date(time));

// The date of what is older than a day, with the time if there is room; nothing for what is not.
const day = new Intl.DateTimeFormat('en-GB', { day: '2-digit', month: 'short' });
const DAY_MS = 86_400_000;
export function date(time, short, at = now.value) {
  if (!(at - Date.parse(time) >= DAY_MS)) return '';
  return short ? day.format(new Date(time)) : moment(time);
}

// A duration: three digits are enough for anybody.
export function took(ms) {
  if (ms === null || ms === undefined) return '–';
  if (ms < 0.005) return '0 ms';
  if (ms < 1) return `${ms.toFixed(2)} ms`;
  if (ms < 10) return `${ms.toFixed(1)} ms`;
  if (ms < 1_000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${(ms / 1_000).toFixed(1)} s`;
  if (ms < 3_600_000) return `${Math.floor(ms / 60_000)} min ${Math.round((ms % 60_000) / 1_000)} s`;
  return `${(ms / 3_600_000).toFixed(1)} h`;
}

export function bytes(number) {
  if (number === null || number === undefined) return '–';
  if (number < 1_024) return `${number} B`;
  if (number < 1_048_576) return `${(number / 1_024).toFixed(1)} KB`;
  return `${(number / 1_048_576).toFixed(1)} MB`;
}

// The beginning of an id or a hash, enough to tell it from its neighbours: the first characters of
// ids made in the same minute are equal, so the last ones are shown.
export const shortId = (id) => (id ?? '').replace(/^urn:receipt:/, '').slice(-12);
export const shortHash = (hash) => (hash ?? '').replace(/^sha256:/, '').slice(0, 12);
