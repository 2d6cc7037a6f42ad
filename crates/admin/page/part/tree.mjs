// JSON as a tree whose branches open and close; each value can be copied. All of it is text.
import { useState } from '../vendor/hooks.mjs';
import { Block, Copy, html, Named } from './shown.mjs';
import { pieces, readable } from '../text.mjs';

const MEMBERS_MAX = 200; // of one branch, at first
const OPEN_DEPTH = 3; // branches that are open at first

// Text that was cut is no JSON, and shown as it is.
export function Payload({ value, label }) {
  if (value === null || value === undefined) return html`<p class="faint">Not stored.</p>`;
  const isTree = typeof value === 'object' && Object.keys(value).length > 0;
  return html`<div class="payload">
    <div class="payload-tools"><${Copy} text=${readable(value)} what=${label} /></div>
    ${isTree ? html`<div class="block tree" tabindex="0" role="region" aria-label=${label}><${Members} value=${value} depth=${1} /></div>`
      : html`<${Block} text=${readable(value)} label=${label} />`}
  </div>`;
}

function Members({ value, depth }) {
  const [max, setMax] = useState(MEMBERS_MAX);
  const members = Object.entries(value);
  return html`<ul>${members.slice(0, max).map(([name, member]) => html`<li key=${name}><${Member} name=${name} value=${member} depth=${depth} /></li>`)}
    ${members.length > max && html`<li><button class="small" onClick=${() => setMax(max + MEMBERS_MAX)}>Show more of ${members.length}</button></li>`}</ul>`;
}

function Member({ name, value, depth }) {
  const [isOpen, setOpen] = useState(depth < OPEN_DEPTH);
  const key = html`<span class="key"><${Named} text=${name} /></span>`;
  const isBranch = value !== null && typeof value === 'object' && Object.keys(value).length > 0;
  if (!isBranch) return html`<div class="leaf">${key}<${Leaf} value=${value} /><${Copy} text=${typeof value === 'string' ? value : JSON.stringify(value)} what=${name} isSmall /></div>`;
  const number = Object.keys(value).length;
  const shape = Array.isArray(value) ? `[${number}]` : `{${number}}`;
  return html`<details open=${isOpen} onToggle=${(event) => setOpen(event.target.open)}>
    <summary>${key}<span class="faint">${shape}</span></summary>
    ${isOpen && html`<${Members} value=${value} depth=${depth + 1} />`}</details>`;
}

function Leaf({ value }) {
  if (typeof value !== 'string') return html`<span class="value">${JSON.stringify(value)}</span>`;
  return html`<span class=${value.includes('\n') ? 'value lines' : 'value'}>${pieces(value).map((part) =>
    (part.isHidden ? html`<span class="hidden-char">${part.text}</span>` : part.text))}</span>`;
}
