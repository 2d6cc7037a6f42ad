// The lines of a change, one column: what was removed, what was added, and what is around it.
import { html, Named } from './shown.mjs';
import { compared } from './change.mjs';

const SIGNS = { removed: ['−', 'removed: ', 'old'], added: ['+', 'added: ', 'new'], same: [' ', '', ''] };
const LINES_MAX = 2_000; // shown; more would take the browser long to lay out

export function Change({ before, after, label = 'Change' }) {
  const lines = before === null ? after.split('\n').map((text) => ({ mark: 'added', text })) : compared(before, after);
  const more = lines.length - LINES_MAX;
  return html`<div class="diff-box" tabindex="0" role="region" aria-label=${label}><table class="diff unified"><tbody>
    ${lines.slice(0, LINES_MAX).map((line) => (line.mark === 'skipped'
      ? html`<tr class="skipped"><td>${line.lines} unchanged ${line.lines === 1 ? 'line' : 'lines'}</td></tr>`
      : html`<tr><${Line} line=${line} /></tr>`))}
    ${more > 0 && html`<tr class="skipped"><td>${more} more lines</td></tr>`}
  </tbody></table></div>`;
}

function Line({ line }) {
  const [sign, words, tone] = SIGNS[line.mark];
  return html`<td class=${tone}><span class="sign">${sign}${words && html`<span class="sr">${words}</span>`}</span><${Named} text=${line.text} /></td>`;
}
