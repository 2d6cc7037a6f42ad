// Asks the gate. Each request shows the token that only this tab knows; the browser adds the
// cookie. Without both the gate answers 401, and the page asks for a link.
import { signal } from './vendor/signals.mjs';

const KEY = 'countersign.session';

export const signedIn = signal(Boolean(sessionStorage.getItem(KEY)));

// True once the gate no longer knows the session of this tab.
export const hasEnded = signal(false);

// True once the gate has started again, under another address of the page.
export const hasMoved = signal(false);

// What the gate refused, in its own words.
export class Refused extends Error {
  constructor(status, error) {
    super(error?.message ?? `the gate answered with HTTP ${status}`);
    this.status = status;
    this.code = error?.code ?? '';
    this.details = error?.details ?? {};
  }
}

// A worker would read all that passes between the page and the gate. Ours has none, and where the
// browser does not say so, nobody signs in or stays signed in.
export async function refuseWorkers() {
  const workers = navigator.serviceWorker;
  if (!workers) return;
  const known = await workers.getRegistrations().catch(() => null);
  if (!workers.controller && known?.length === 0) return;
  forget();
  const why = known ? 'a service worker controls this address' : 'this browser does not say if a service worker controls this address';
  throw new Error(`${why}, so nobody can sign in here: clear what the browser keeps for it, and open a new link`);
}

export async function signIn(code) {
  const answer = await fetch('/api/v1/page/session', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ code }),
  });
  if (!answer.ok) throw await refusal(answer);
  sessionStorage.setItem(KEY, (await answer.json()).token);
  signedIn.value = true;
  hasEnded.value = false;
}

export async function signOut() {
  try {
    await request('DELETE', '/page/sessions');
  } finally {
    forget();
  }
}

function forget() {
  sessionStorage.removeItem(KEY);
  signedIn.value = false;
}

// The answer as it comes, for streams and files.
export async function request(method, path, { body, headers, abort } = {}) {
  const sent = { 'x-countersign-session': sessionStorage.getItem(KEY) ?? '', ...headers };
  if (body !== undefined) sent['content-type'] = 'application/json';
  const answer = await fetch(`/api/v1${path}`, {
    method,
    headers: sent,
    body: body === undefined ? undefined : JSON.stringify(body),
    signal: abort,
    cache: 'no-store',
  });
  if (answer.ok) return answer;
  const refused = await refusal(answer);
  // Each start of the gate has a name of its own, and knows no other.
  const isForeign = answer.status === 403 && refused.code === 'FORBIDDEN';
  if (answer.status === 401 || isForeign) {
    hasEnded.value = signedIn.value || hasEnded.value;
    hasMoved.value = isForeign;
    forget();
  }
  throw refused;
}

async function refusal(answer) {
  try {
    return new Refused(answer.status, (await answer.json()).error);
  } catch {
    return new Refused(answer.status);
  }
}

export const get = async (path, abort) => (await request('GET', path, { abort })).json();
export const getText = async (path, abort) => (await request('GET', path, { abort })).text();
export const post = async (path, body) => (await request('POST', path, { body })).json();
export const remove = async (path) => (await request('DELETE', path)).json();

// A path whose parts may hold any character.
export const path = (...parts) => parts.map((part) => '/' + encodeURIComponent(part)).join('');

// `?a=b` of those values that are there.
export function query(values) {
  const given = Object.entries(values).filter(([, value]) => value !== undefined && value !== '');
  return given.length ? '?' + new URLSearchParams(given) : '';
}

// Saves an export as a file. A plain link could not show the token.
export async function save(path, name) {
  const blob = await (await request('GET', path)).blob();
  const link = document.createElement('a');
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}
