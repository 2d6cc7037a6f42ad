// A table of any length. Only the rows in sight are in the document; all have one height, so that
// where a row stands is a multiplication.
import { useEffect, useLayoutEffect, useRef, useState } from '../vendor/hooks.mjs';
import { html } from './shown.mjs';

const HEAD_PX = 34;
const ROW_PX = 34;
const ROW_NARROW_PX = 52; // two lines of text
const AROUND = 10; // rows beyond the edges, so that quick scrolling meets no gaps
const NARROW = matchMedia('(max-width: 760px)');

export const isNarrow = () => NARROW.matches;

export function useNarrow() {
  const [matches, set] = useState(NARROW.matches);
  useEffect(() => {
    const told = () => set(NARROW.matches);
    NARROW.addEventListener('change', told);
    told(); // it may have changed since the first render
    return () => NARROW.removeEventListener('change', told);
  }, []);
  return matches;
}

// `columns`: [{ name, cell, class, width }]. `rowAt(index)` may give null for a row that is not
// there yet, or one with a `heading` for the rows below it. `onSight(first, last, isAtTop)` tells
// which rows are looked at.
export function List({ label, columns, count, rowAt, idOf, current, onOpen, onSight, jump }) {
  const box = useRef(null);
  const [sight, setSight] = useState({ top: 0, height: 600 });
  const at = useRef(-1); // the row that the keyboard is at
  const setAt = (index) => { at.current = index; };
  const row = useNarrow() ? ROW_NARROW_PX : ROW_PX;
  useLayoutEffect(() => {
    const measure = () => setSight({ top: box.current.scrollTop, height: box.current.clientHeight });
    const watch = new ResizeObserver(measure);
    watch.observe(box.current);
    return () => watch.disconnect();
  }, []);
  useEffect(() => {
    if (jump !== undefined && jump !== null) box.current.scrollTop = Math.max(0, (jump - 3) * row);
  }, [jump]);
  const first = Math.max(0, Math.floor(sight.top / row) - AROUND);
  const last = Math.min(count, Math.ceil((sight.top + sight.height) / row) + AROUND);
  const isAtTop = sight.top < row;
  useEffect(() => { onSight?.(first, last, isAtTop); }, [first, last, count, isAtTop]);

  const move = (next) => {
    const index = Math.min(count - 1, Math.max(0, next));
    if (index < 0) return;
    setAt(index);
    const found = rowAt(index);
    if (current && found && !found.heading) onOpen?.(found);
    const view = box.current;
    const top = index * row;
    if (top < view.scrollTop) view.scrollTop = top;
    if (top + 2 * row > view.scrollTop + view.clientHeight) view.scrollTop = top + 2 * row - view.clientHeight;
    requestAnimationFrame(() => view.querySelector(`tr[data-index="${index}"]`)?.focus({ preventScroll: true }));
  };
  useRowKeys({ box, at, move, open: () => { const found = at.current >= 0 && rowAt(at.current); if (found && !found.heading) onOpen?.(found); } });

  const rows = [];
  for (let index = first; index < last; index += 1) {
    rows.push(Row({ index, columns, found: rowAt(index), idOf, current, onOpen, setAt }));
  }
  // Not taller than its rows, and two pixels for its edges.
  const most = `${HEAD_PX + count * row + 2}px`;
  return html`<div class="list" ref=${box} style=${{ maxHeight: most, minHeight: `min(180px, ${most})` }} tabindex="0" role="region" aria-label=${label}
      onScroll=${(event) => setSight({ top: event.target.scrollTop, height: event.target.clientHeight })}>
    <table aria-rowcount=${count + 1} aria-label=${label}>
      <colgroup>${columns.map((column) => html`<col class=${column.class} style=${{ width: column.width }} />`)}</colgroup>
      <thead><tr>${columns.map((column) => html`<th scope="col" class=${column.class}>${column.name}</th>`)}</tr></thead>
      <tbody>
        <tr class="gap" aria-hidden="true"><td style=${{ height: `${first * row}px` }}></td></tr>
        ${rows}
        <tr class="gap" aria-hidden="true"><td style=${{ height: `${(count - last) * row}px` }}></td></tr>
      </tbody>
    </table>
  </div>`;
}

function Row({ index, columns, found, idOf, current, onOpen, setAt }) {
  if (found?.heading) {
    return html`<tr key=${`heading ${found.id}`} class="heading" data-index=${index} tabindex="-1" aria-rowindex=${index + 2}>
      <td colspan=${isNarrow() ? columns.filter((column) => !column.class?.includes('wide')).length : columns.length}>${found.heading}</td></tr>`;
  }
  const id = found ? idOf(found) : `row ${index}`;
  const isCurrent = found && current === id;
  const open = () => { setAt(index); if (found) onOpen?.(found); };
  return html`<tr key=${id} data-index=${index} data-id=${found ? id : undefined} tabindex="-1"
      aria-rowindex=${index + 2} aria-current=${isCurrent ? 'true' : undefined}
      class=${onOpen ? 'opens' : ''} onClick=${open}>
    ${columns.map((column) => html`<td class=${column.class}>${found ? column.cell(found) : html`<span class="bone" aria-hidden="true"></span>`}</td>`)}
  </tr>`;
}

// j and k, or the arrows, go from row to row; Enter opens one. The arrows only within the list, since
// they scroll elsewhere; of several lists, the first one hears those who are in none.
function useRowKeys(keys) {
  const newest = useRef(keys);
  newest.current = keys;
  useEffect(() => {
    const pressed = (event) => {
      if (isTyping(event) || event.ctrlKey || event.metaKey || event.altKey) return;
      const { box, at, move, open } = newest.current;
      const isWithin = box.current.contains(event.target);
      const isMeant = isWithin || (!event.target.closest('.list') && document.querySelector('.list') === box.current);
      if (!isMeant) return;
      if (event.key === 'j' || (isWithin && event.key === 'ArrowDown')) move(at.current + 1);
      else if (event.key === 'k' || (isWithin && event.key === 'ArrowUp')) move(at.current - 1);
      else if (event.key === 'Enter' && !event.target.closest('a, button, summary')) open();
      else return;
      event.preventDefault();
    };
    document.addEventListener('keydown', pressed);
    return () => document.removeEventListener('keydown', pressed);
  }, []);
}

export function isTyping(event) {
  const { target } = event;
  return target.isContentEditable || ['INPUT', 'TEXTAREA', 'SELECT'].includes(target.tagName)
    || Boolean(document.querySelector('dialog[open]'));
}
