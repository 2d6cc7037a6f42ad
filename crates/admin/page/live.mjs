// What happens, as it happens: one stream for the whole page. It is read with `fetch`, since an
// EventSource cannot show the tab's token. Events are handed on in small batches, so that a burst
// of them never blocks the page.
import { signal } from './vendor/signals.mjs';
import { request, signedIn } from './api.mjs';

// 'connecting', 'live', or 'lost' while another attempt is waited for.
export const stream = signal('connecting');

// Since when the gate has been gone, and since when it has been back; null if it never was.
export const lostSince = signal(null);
export const backSince = signal(null);

const BATCH_MAX = 200; // events handed on at once: a few milliseconds of work
const WAITING_MAX = 5_000; // more than that, and looking again costs less than catching up
const BATCH_EVERY_MS = 60;
const PAUSE_MIN_MS = 500;
const PAUSE_MAX_MS = 10_000;

const listeners = new Map();
let lastId = null;
let waiting = [];
let isScheduled = false;

// Hears of events of a kind, in lists; 'again' means that some may have been missed. Gives a
// function that ends it.
export function hear(kind, listener) {
  const heard = listeners.get(kind) ?? new Set();
  listeners.set(kind, heard.add(listener));
  return () => heard.delete(listener);
}

function tell(kind, events) {
  for (const listener of listeners.get(kind) ?? []) listener(events);
}

export async function listen() {
  let pause = PAUSE_MIN_MS;
  for (;;) {
    if (!signedIn.value) {
      lastId = null;
      await new Promise((resolve) => setTimeout(resolve, PAUSE_MIN_MS));
      continue;
    }
    try {
      const headers = lastId === null ? {} : { 'last-event-id': lastId };
      const answer = await request('GET', '/events', { headers });
      stream.value = 'live';
      if (lostSince.value) backSince.value = Date.now();
      lostSince.value = null;
      // Servers and tools are not told again, and views may have looked before: look once after each
      // beginning.
      tell('again', []);
      pause = PAUSE_MIN_MS;
      await read(answer.body);
    } catch {
      // Said below: the state is 'lost' until the next attempt.
    }
    stream.value = 'lost';
    // One that was signed out lost nothing.
    lostSince.value = signedIn.value ? lostSince.value ?? Date.now() : null;
    await new Promise((resolve) => setTimeout(resolve, pause));
    pause = Math.min(pause * 2, PAUSE_MAX_MS);
  }
}

async function read(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = '';
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const parts = (rest + value).split('\n\n');
    rest = parts.pop();
    for (const part of parts) keep(part);
  }
}

function keep(text) {
  const event = { kind: '', data: '' };
  for (const line of text.split('\n')) {
    if (line.startsWith('event: ')) event.kind = line.slice(7);
    if (line.startsWith('id: ')) lastId = line.slice(4);
    if (line.startsWith('data: ')) event.data = line.slice(6);
  }
  if (!event.kind) return;
  waiting.push(event);
  if (waiting.length > WAITING_MAX) {
    waiting = [];
    tell('again', []);
  }
  schedule(BATCH_EVERY_MS);
}

function schedule(after) {
  if (isScheduled) return;
  isScheduled = true;
  setTimeout(handOn, after);
}

function handOn() {
  isScheduled = false;
  const byKind = new Map();
  for (const { kind, data } of waiting.splice(0, BATCH_MAX)) {
    byKind.set(kind, [...(byKind.get(kind) ?? []), JSON.parse(data)]);
  }
  for (const [kind, events] of byKind) tell(kind, events);
  if (waiting.length) schedule(16);
}
