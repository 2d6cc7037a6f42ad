// Ctrl+K: a way to every view, server, tool, agent, run and record by a few letters of its name.
// `?`: the keys of the page.
import { useEffect, useRef, useState } from '../vendor/hooks.mjs';
import { get } from '../api.mjs';
import { link } from '../place.mjs';
import { html, Shown } from './shown.mjs';
import { isTyping } from './list.mjs';
import { matching, recordId } from './match.mjs';

const KEYS = [
  ['Ctrl K', 'go to a view, tool, server, agent, run or record'],
  ['/', 'search in this view'],
  ['j, k', 'next and previous row; with details open, the next details'],
  ['Enter', 'open the row'],
  ['Escape', 'close details'],
  ['a, s', 'in a review: approve, skip'],
  ['?', 'these keys'],
];

// All that one can go to: `{ kind, name, href or run }`.
async function everything(views, actions) {
  const or = (promise, member) => promise.then((answer) => answer[member], () => []);
  const [servers, tools, agents, runs] = await Promise.all([
    or(get('/servers'), 'servers'), or(get('/tools'), 'tools'), or(get('/agents'), 'agents'), or(get('/runs?limit=50'), 'runs')]);
  return [
    ...views.map(([view, name]) => ({ kind: 'view', name, href: link(view) })),
    ...actions,
    ...servers.map(({ name }) => ({ kind: 'server', name, href: link('servers', { server: name }) })),
    ...agents.map(({ name }) => ({ kind: 'agent', name, href: link('activity', { agent: name }) })),
    ...runs.map(({ id, workflow }) => ({ kind: 'run', name: `${workflow} ${id}`, href: link('runs', { run: id }) })),
    ...tools.map(({ name, server }) => ({ kind: 'tool', name, href: link('servers', { server, tool: name.slice(server.length + 1) }) })),
  ];
}

export function Palette({ views, actions }) {
  const [shown, setShown] = useState(null); // 'palette' or 'keys'
  useEffect(() => {
    const pressed = (event) => {
      const isPalette = event.key.toLowerCase() === 'k' && (event.ctrlKey || event.metaKey);
      const isKeys = event.key === '?' && !isTyping(event);
      if (!isPalette && !isKeys) return;
      if (isPalette && document.querySelector('dialog[open]:not(.palette)')) return;
      event.preventDefault();
      setShown(isPalette ? 'palette' : 'keys');
    };
    const asked = () => setShown('palette');
    document.addEventListener('keydown', pressed);
    addEventListener('countersign-palette', asked);
    return () => { document.removeEventListener('keydown', pressed); removeEventListener('countersign-palette', asked); };
  }, []);
  const close = () => setShown(null);
  if (shown === 'palette') return html`<${Finder} views=${views} actions=${actions} onClose=${close} />`;
  return shown === 'keys' && html`<${Keys} onClose=${close} />`;
}

export const openPalette = () => dispatchEvent(new Event('countersign-palette'));

function useModal() {
  const dialog = useRef(null);
  useEffect(() => { dialog.current.showModal(); }, []);
  return dialog;
}

function Keys({ onClose }) {
  const dialog = useModal();
  return html`<dialog ref=${dialog} class="palette" aria-label="Keys" onClose=${onClose}>
    <h2>Keys</h2>
    <dl class="keys">${KEYS.map(([keys, words]) => html`<dt><kbd>${keys}</kbd></dt><dd>${words}</dd>`)}</dl>
    <div class="buttons"><button onClick=${() => dialog.current.close()}>Close</button></div></dialog>`;
}

function Finder({ views, actions, onClose }) {
  const dialog = useModal();
  const [all, setAll] = useState(views.map(([view, name]) => ({ kind: 'view', name, href: link(view) })));
  const [text, setText] = useState('');
  const [at, setAt] = useState(0);
  useEffect(() => { everything(views, actions).then(setAll); }, []);
  const id = recordId(text);
  const found = [
    ...(id ? [{ kind: 'record', name: id, href: link('activity', { open: id }) }] : []),
    ...matching(all, text),
    ...(text.trim() ? [{ kind: 'search', name: `Search activity for “${text.trim()}”`, href: link('activity', { q: text.trim() }) }] : []),
  ];
  const choose = (item) => {
    dialog.current.close();
    if (item.run) item.run();
    else location.hash = item.href;
  };
  const pressed = (event) => {
    if (event.key === 'ArrowDown') setAt(Math.min(found.length - 1, at + 1));
    else if (event.key === 'ArrowUp') setAt(Math.max(0, at - 1));
    else if (event.key === 'Enter' && found[at]) choose(found[at]);
    else return;
    event.preventDefault();
  };
  return html`<dialog ref=${dialog} class="palette" aria-label="Go to" onClose=${onClose}>
    <input type="text" role="combobox" aria-label="Go to" aria-expanded="true" aria-controls="palette-list" aria-activedescendant=${`palette-${at}`} autocomplete="off" spellcheck="false"
      placeholder="a view, tool, server, agent, run, or the id of a record" onKeyDown=${pressed} onInput=${(event) => { setText(event.target.value); setAt(0); }} />
    <ul id="palette-list" role="listbox" aria-label="Places">${found.map((item, number) => html`<li key=${`${item.kind} ${item.name}`} id=${`palette-${number}`} role="option" aria-selected=${number === at}
      onClick=${() => choose(item)} onMouseMove=${() => setAt(number)}><span class="faint">${item.kind}</span><${Shown} text=${item.name} max=${120} /></li>`)}</ul>
  </dialog>`;
}
