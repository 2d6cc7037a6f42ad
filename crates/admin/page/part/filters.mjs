// Filters of a list, kept in the address.
import { useEffect, useRef, useState } from '../vendor/hooks.mjs';
import { change, place } from '../place.mjs';
import { html, words } from './shown.mjs';
import { isTyping, useNarrow } from './list.mjs';

// A choice among few words. An option is a word, or a word and what to show for it. A value that is
// none of them, from a link, is kept.
export function Choice({ name, label, options }) {
  const value = place.value.values[name] ?? '';
  const listed = options.map((option) => (Array.isArray(option) ? option : [option, words(option)]));
  const pairs = value && !listed.some(([option]) => option === value) ? [[value, value], ...listed] : listed;
  return html`<label class="field"><span>${label}</span>
    <select value=${value} onChange=${(event) => change({ [name]: event.target.value, open: '' })}>
      <option value="" selected=${value === ''}>any</option>
      ${pairs.map(([option, shown]) => html`<option value=${option} selected=${option === value}>${shown}</option>`)}
    </select></label>`;
}

// Filters that a small screen has behind one word; `names` are those that it counts.
export function Fold({ names, children }) {
  const set = names.filter((name) => place.value.values[name]).length;
  if (!useNarrow()) return children;
  return html`<details class="more-filters" open=${set > 0}><summary>Filters${set > 0 && ` (${set})`}</summary><div class="filters">${children}</div></details>`;
}

// Filters that few need, behind one word on every screen unless one is set.
export function More({ names, children }) {
  const set = names.filter((name) => place.value.values[name]).length;
  const [isOpen, setOpen] = useState(set > 0);
  useEffect(() => { if (set) setOpen(true); }, [set]);
  return html`<details class="more-filters" open=${isOpen} onToggle=${(event) => setOpen(event.target.open)}><summary>More filters${set > 0 && ` (${set})`}</summary><div class="filters">${children}</div></details>`;
}

// A filter that is on or off.
export function Check({ name, label, text }) {
  return html`<label class="field check"><span>${label}</span><span class="checked"><input type="checkbox" checked=${place.value.values[name] === 'true'}
    onChange=${(event) => change({ [name]: event.target.checked ? 'true' : '', open: '' })} /> ${text}</span></label>`;
}

// Text; what is typed is looked for once the typing pauses. `/` leads here.
export function Search({ name = 'q', label, hint, isFirst }) {
  const input = useRef(null);
  const timer = useRef(null);
  const value = place.value.values[name] ?? '';
  useEffect(() => {
    if (input.current && document.activeElement !== input.current) input.current.value = value;
  }, [value]);
  useEffect(() => {
    if (!isFirst) return undefined;
    const pressed = (event) => {
      if (event.key !== '/' || isTyping(event)) return;
      event.preventDefault();
      input.current.focus();
      input.current.select();
    };
    document.addEventListener('keydown', pressed);
    return () => document.removeEventListener('keydown', pressed);
  }, [isFirst]);
  const typed = (event) => {
    clearTimeout(timer.current);
    const text = event.target.value;
    timer.current = setTimeout(() => change({ [name]: text, open: '' }, { small: true }), 250);
  };
  return html`<label class="field grow"><span>${label}${isFirst && html` <kbd>/</kbd>`}</span>
    <input type="search" ref=${input} defaultValue=${value} placeholder=${hint} onInput=${typed}
      onKeyDown=${(event) => event.key === 'Escape' && event.target.blur()} /></label>`;
}

// What else narrows the list, each with a way to let go of it.
export function Narrowed({ names }) {
  const { values } = place.value;
  const given = names.filter((name) => values[name]);
  if (!given.length) return null;
  return html`<ul class="narrowed" aria-label="More filters">
    ${given.map((name) => html`<li><span class="faint">${words(name)}</span> <bdi>${values[name]}</bdi>
      <button class="quiet" aria-label=${`Remove the filter ${words(name)}`} onClick=${() => change({ [name]: '' })}>✕</button></li>`)}
  </ul>`;
}

// Few words of which one holds, beside each other.
export function Switch({ name, label, options, fallback }) {
  const value = place.value.values[name] ?? fallback;
  return html`<div class="switch" role="group" aria-label=${label}>
    ${options.map(([option, shown]) => html`<button aria-pressed=${option === value}
      onClick=${() => change({ [name]: option === fallback ? '' : option })}>${shown}</button>`)}
  </div>`;
}
