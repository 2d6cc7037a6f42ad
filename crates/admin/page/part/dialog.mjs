// What opens beside or above a view: the details of a row, and questions before a decision.
import { useEffect, useRef, useState } from '../vendor/hooks.mjs';
import { Fault, html, useAction } from './shown.mjs';

// Details beside a list; on a small screen above it. Escape closes it, and whoever opened it has
// the focus again.
export function Beside({ title, onClose, children }) {
  const heading = useRef(null);
  useEffect(() => {
    const before = document.activeElement;
    heading.current?.focus();
    return () => before?.isConnected && before.focus();
  }, []);
  useEscape(onClose);
  return html`<aside class="beside" aria-label="Details">
    <header>
      <h2 tabindex="-1" ref=${heading}>${title}</h2>
      <button class="quiet" onClick=${onClose} title="Escape">✕ close</button>
    </header>
    <div class="beside-body">${children}</div>
  </aside>`;
}

export function useEscape(onClose) {
  const newest = useRef(onClose);
  newest.current = onClose;
  useEffect(() => {
    const pressed = (event) => {
      if (event.key === 'Escape' && !document.querySelector('dialog[open]')) newest.current();
    };
    document.addEventListener('keydown', pressed);
    return () => document.removeEventListener('keydown', pressed);
  }, []);
}

// A decision that asks for confirmation. It applies to what was shown when the question opened;
// later updates do not change it.
export function Decision({ label, question, confirm = label, tone = '', work, disabled, children }) {
  const [asked, setAsked] = useState(null);
  const { isBusy, error, act } = useAction();
  const dialog = useRef(null);
  useEffect(() => { if (asked) dialog.current?.showModal(); }, [asked]);
  const close = () => setAsked(null);
  const decide = async () => { if (await act(asked.work)) close(); };
  return html`
    <button class=${tone} disabled=${disabled || isBusy} onClick=${() => setAsked({ work, question })}>${label}</button>
    ${asked && html`<dialog ref=${dialog} onClose=${close} aria-label=${label}>
      <p class="question">${asked.question}</p>
      ${children}
      <${Fault} error=${error} />
      <div class="buttons">
        <button class=${tone || 'primary'} disabled=${isBusy} onClick=${decide}>${confirm}</button>
        <button onClick=${close}>Cancel</button>
      </div>
    </dialog>`}`;
}

// A decision that is easily undone is carried out at once.
export function Action({ label, work, tone = '', disabled }) {
  const { isBusy, error, act } = useAction();
  return html`<button class=${tone} disabled=${disabled || isBusy} onClick=${() => act(work)}>${label}</button>
    <${Fault} error=${error} />`;
}
