// Small parts that every view shows: text of others, times, states, empty and failed sights.
import { h } from '../vendor/preact.mjs';
import { useEffect, useRef, useState } from '../vendor/hooks.mjs';
import htm from '../vendor/htm.mjs';
import { get } from '../api.mjs';
import { ago, date, exact } from '../format.mjs';
import { hear } from '../live.mjs';
import { cut, halves, named, pieces, plain } from '../text.mjs';

// All text of the page passes here, questions and faults too, so that none of it hides anything.
export const html = htm.bind((type, props, ...children) =>
  h(type, typeof type === 'string' ? withNamed(props) : props, ...children.map(revealed)));

function revealed(child) {
  if (Array.isArray(child)) return child.map(revealed);
  return typeof child === 'string' && named(child) !== child ? marked(pieces(child)) : child;
}

function withNamed(props) {
  const hints = ['title', 'aria-label'].filter((name) => typeof props?.[name] === 'string');
  return { ...props, ...Object.fromEntries(hints.map((name) => [name, named(props[name])])) };
}

// Text that others wrote. It is isolated, so that its direction stays its own business, and what
// it hides is shown. Nothing here is ever read as markup: these are text nodes.
export function Shown({ text, max = 200 }) {
  const all = String(text ?? '');
  return html`<bdi title=${all.length > 24 ? plain(all) : undefined}>${marked(pieces(cut(all, max)))}</bdi>`;
}

// A path or another name, of which the last part is always readable: what is too long loses its
// middle. The whole stands in the hint.
export function Target({ text }) {
  const { head, tail } = halves(String(text ?? ''));
  return html`<bdi class="middle" title=${plain(text, 1_000)}>${head && html`<span class="middle-head">${head}</span>`}<span class="middle-tail">${tail}</span></bdi>`;
}

// Copies a text as it is, hidden characters included.
export function Copy({ text, what = '', isSmall }) {
  const [state, setState] = useState('');
  const copy = async (event) => {
    event.stopPropagation();
    event.preventDefault();
    try {
      await navigator.clipboard.writeText(text);
      setState('Copied');
    } catch {
      setState('Not allowed');
    }
    setTimeout(() => setState(''), 1_500);
  };
  return html`<button type="button" class=${isSmall ? 'copy quiet small' : 'copy small'} aria-label=${`Copy ${what}`.trim()} title=${`Copy ${what}`.trim()} onClick=${copy}>
    ${state || html`<svg viewBox="0 0 12 12" width="12" height="12" aria-hidden="true"><path d="M4 4h7v7H4zM8 4V1H1v7h3" /></svg>${isSmall ? '' : ' Copy'}`}</button>`;
}

// Something is on its way; its place is kept.
export const Loading = ({ lines = 6 }) => html`<div class="loading" role="status"><span class="sr">Loading…</span>
  ${Array.from({ length: lines }, (_, at) => html`<span key=${at} class="bone" aria-hidden="true"></span>`)}</div>`;

// Many lines of it, whole.
export function Block({ text, label }) {
  return html`<pre class="block" tabindex="0" role="region" aria-label=${label}>${marked(pieces(text))}</pre>`;
}

// Text in which the gate has named what was hidden.
export const Named = ({ text }) => marked(pieces(text));

const marked = (parts) => parts.map((part) =>
  part.isHidden ? html`<span class="hidden-char">${part.text}</span>` : part.text);

// `dated` ones have a date once they are older than a day.
export function Ago({ time, short, dated }) {
  if (!time) return html`<span class="faint">–</span>`;
  const words = (dated && date(time, short)) || ago(time);
  return html`<time datetime=${time} title=${exact(time)}>${short ? words.replace(' ago', '') : words}</time>`;
}

// Both at once, for details.
export const When = ({ time }) =>
  time ? html`<span><${Ago} time=${time} /> <span class="faint">${exact(time)}</span></span>` : '–';

// Each state has a word, a colour and a form of its own, so that none is told by colour alone.
const TONES = {
  success: 'good', ready: 'good', callable: 'good', approved: 'good', valid: 'good', ok: 'good',
  complete: 'good', open: 'accent', live: 'good', connected: 'good',
  error: 'bad', failure: 'bad', failing: 'bad', timed_out: 'bad', revoked: 'quiet', expired: 'quiet',
  needs_login: 'warn', damaged: 'bad', blocked: 'warn', pending_approval: 'warn', quarantined: 'warn', server_quarantined: 'warn',
  interrupted: 'warn', unknown: 'warn', pending: 'accent', running: 'accent', connecting: 'accent',
};
const MARKS = { good: '●', bad: '✕', warn: '▲', accent: '◐', quiet: '○' };

export function State({ word, said = words(word) }) {
  const tone = TONES[word] ?? 'quiet';
  return html`<span class=${'state ' + tone}><span class="mark" aria-hidden="true">${MARKS[tone]}</span>${said}</span>`;
}

// Of a server, on the command line too, an error is a state and no outcome.
export const ServerState = ({ word }) => html`<${State} word=${word} said=${word === 'error' ? word : words(word)} />`;

// One vocabulary for people, whatever a status is called in the API.
const SPOKEN = { blocked: 'refused', error: 'failed', failure: 'failed', pending: 'running', needs_login: 'needs a sign-in' };
export const words = (word) => SPOKEN[word] ?? String(word ?? '').replaceAll('_', ' ');

export const Class = ({ word }) =>
  word ? html`<span class=${'class ' + word}>${word}</span>` : html`<span class="faint">–</span>`;

// Nothing to see yet, and what to do about it.
export function Empty({ title, children, command }) {
  return html`<div class="empty">
    <p class="empty-title">${title}</p>
    ${children}
    ${command && html`<${Command} text=${command} />`}
  </div>`;
}

// A command to run, with a way to take it along.
export const Command = ({ text }) => html`<div class="command"><pre tabindex="0"><code>${text}</code></pre><${Copy} text=${text} what="the command" isSmall /></div>`;

export const Fault = ({ error }) =>
  error && html`<p class="fault" role="alert">${error.code && html`<strong>${error.code}</strong>`} ${error.message}</p>`;

// What a path answers, kept while it is asked again. `kinds` are events upon which it is; several
// within the pause are answered by one look. A slow answer is waited for, whatever happens meanwhile.
export function useAnswer(path, kinds = [], pauseMs = 1_000) {
  const [state, setState] = useState({ path, answer: null, error: null });
  const timer = useRef(null);
  const look = useRef(() => {});
  useEffect(() => {
    const again = () => { timer.current ??= setTimeout(() => { timer.current = null; look.current(); }, pauseMs); };
    const ends = [...kinds, 'again'].map((kind) => hear(kind, again));
    return () => {
      ends.forEach((end) => end());
      clearTimeout(timer.current);
      timer.current = null;
    };
  }, [kinds.join()]);
  useEffect(() => {
    if (!path) return undefined;
    const abort = new AbortController();
    look.current = asking(path, abort.signal, setState);
    look.current();
    return () => { look.current = () => {}; abort.abort(); };
  }, [path]);
  const isCurrent = state.path === path;
  return { answer: isCurrent ? state.answer : null, error: isCurrent ? state.error : null, look: () => look.current() };
}

// A function that asks, one request at a time; if it is called meanwhile, it asks once more.
function asking(path, signal, setState) {
  let [isAsking, isBehind] = [false, false];
  return async () => {
    isBehind = true;
    if (isAsking) return;
    isAsking = true;
    while (isBehind && !signal.aborted) {
      isBehind = false;
      const next = await get(path, signal).then((answer) => () => ({ path, answer, error: null }),
        (error) => (last) => ({ path, answer: last.path === path ? last.answer : null, error }));
      if (!signal.aborted) setState(next);
    }
    isAsking = false;
  };
}

// Something a person does: it runs once at a time, and tells what went wrong.
export function useAction() {
  const [state, setState] = useState({ isBusy: false, error: null });
  const act = async (work) => {
    setState({ isBusy: true, error: null });
    try {
      await work();
      setState({ isBusy: false, error: null });
      return true;
    } catch (error) {
      setState({ isBusy: false, error });
      return false;
    }
  };
  return { ...state, act };
}

// A title for the browser's tab, and for those who hear the page.
export function useTitle(title) {
  useEffect(() => { document.title = `${named(title)} · Countersign`; }, [title]);
}
