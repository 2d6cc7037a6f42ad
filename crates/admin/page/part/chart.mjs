// Bars over time: calls by class, stacked, with refusals and errors marked above them.
import { useLayoutEffect, useRef, useState } from '../vendor/hooks.mjs';
import { html } from './shown.mjs';
import { count, hour, moment, plural } from '../format.mjs';

const HEIGHT = 178;
const LEFT = 40; // for the numbers beside the bars
const TOP = 12; // for half of a number
const BOTTOM = 20;

const CLASSES = [['reads', 'read'], ['writes', 'write'], ['destructive', 'destructive'], ['unknown', 'unknown']];

// A refused call of an unknown tool may have no class.
const withRest = (bucket) => ({
  ...bucket,
  unknown: Math.max(0, bucket.calls - bucket.reads - bucket.writes - bucket.destructive),
});

// A number that people like to see at the end of a scale, at least `most`; its half is whole too.
export function roundUp(most) {
  const ten = 10 ** Math.floor(Math.log10(Math.max(1, most)));
  return [2, 4, 6, 8, 10].map((step) => step * ten).find((end) => end >= most) ?? 20 * ten;
}

// As wide as its place, so that its text is as large as all text.
export function useWidth() {
  const box = useRef(null);
  const [width, setWidth] = useState(0);
  useLayoutEffect(() => {
    const watch = new ResizeObserver(() => setWidth(box.current.clientWidth));
    watch.observe(box.current);
    return () => watch.disconnect();
  }, []);
  return [box, width];
}

export function Chart({ buckets, seconds }) {
  const [box, width] = useWidth();
  const shown = buckets.map(withRest);
  const top = roundUp(Math.max(4, ...shown.map((bucket) => bucket.calls)));
  const step = Math.max(0, width - LEFT) / shown.length;
  const y = (calls) => TOP + (HEIGHT - BOTTOM - TOP) * (1 - calls / top);
  const label = seconds < 86_400 && shown.length * seconds <= 86_400 ? hour : moment;
  const every = Math.ceil(shown.length / Math.max(2, Math.floor(width / 130)));
  return html`<div ref=${box}><svg class="chart" width=${width} height=${HEIGHT} role="img" aria-label=${inWords(shown, seconds)}>
    ${[0, 0.5, 1].map((part) => html`<g>
      <line x1=${LEFT} x2=${width} y1=${y(top * part) + 0.5} y2=${y(top * part) + 0.5} class="rule" />
      <text x=${LEFT - 6} y=${y(top * part) + 4} text-anchor="end">${count(top * part)}</text>
    </g>`)}
    ${shown.map((bucket, index) => Bar({ bucket, x: LEFT + index * step, step, y }))}
    ${shown.map((bucket, index) => index % every === 0 && html`<text x=${LEFT + index * step} y=${HEIGHT - 4}>${label(bucket.start)}</text>`)}
  </svg></div>`;
}

function Bar({ bucket, x, step, y }) {
  let below = 0;
  const parts = CLASSES.map(([member, name]) => {
    const number = bucket[member];
    if (!number) return null;
    const top = y(below + number);
    const height = y(below) - top;
    below += number;
    return html`<rect class=${'bar ' + name} x=${x + step * 0.12} width=${Math.max(1, step * 0.76)} y=${top} height=${height} />`;
  });
  const bad = bucket.errors + bucket.blocked;
  return html`<g>
    <title>${tip(bucket)}</title>
    <rect class="hit" x=${x} y="0" width=${step} height=${HEIGHT - BOTTOM} />
    ${parts}
    ${bad > 0 && html`<circle class=${bucket.errors ? 'bad-dot' : 'warn-dot'} cx=${x + step / 2} cy=${Math.max(3, y(below) - 5)} r="2.5" />`}
  </g>`;
}

const tip = (bucket) =>
  `${moment(bucket.start)}: ${plural(bucket.calls, 'call')} (${bucket.reads} read, ${bucket.writes} write, `
  + `${bucket.destructive} destructive), ${bucket.blocked} refused, ${bucket.errors} failed`;

function inWords(buckets, seconds) {
  const sum = (member) => buckets.reduce((total, bucket) => total + bucket[member], 0);
  const most = buckets.reduce((busiest, bucket) => (bucket.calls > busiest.calls ? bucket : busiest), buckets[0]);
  const width = seconds === 60 ? 'minute' : `${Math.round(seconds / 60)} minutes`;
  return `Calls per ${width}: ${plural(sum('reads'), 'read')}, ${plural(sum('writes'), 'write')}, `
    + `${count(sum('destructive'))} destructive; most at ${moment(most.start)}, ${plural(most.calls, 'call')}`;
}

export const Legend = () => html`<ul class="legend">
  <li><span class="swatch read"></span>read</li>
  <li><span class="swatch write"></span>write</li>
  <li><span class="swatch destructive"></span>destructive</li>
  <li><span class="swatch unknown"></span>no class</li>
  <li><span class="dot warn-dot"></span>refused</li>
  <li><span class="dot bad-dot"></span>failed</li>
</ul>`;
