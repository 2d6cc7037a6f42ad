// The graph of contention: agents on one side, resources on the other, and a line wherever an agent
// met another at a resource. All meetings of an agent at a resource are one line, of the kind of the
// worst. The table beside it says the same, so this picture is hidden from screen readers.
import { useState } from '../vendor/hooks.mjs';
import { html } from './shown.mjs';
import { useWidth } from './chart.mjs';
import { numbered } from './lanes.mjs';
import { bundles, columns, curve, KINDS, layout, WORDS } from './layout.mjs';
import { cut, halves, plain } from '../text.mjs';
import { plural } from '../format.mjs';

const MANY = 60; // lines from which on they are faint until one points at something
const ZOOM_STEP = 1.25;
const ZOOM_MIN = 0.5;
const ZOOM_MAX = 4;

export function Graph({ edges, current, onOpen }) {
  const [zoom, setZoom] = useState(1);
  const [near, setNear] = useState(null); // the node that is pointed at
  const by = (factor) => setZoom((last) => Math.min(ZOOM_MAX, Math.max(ZOOM_MIN, last * factor)));
  const drawn = bundles(edges);
  const place = layout(drawn);
  const [box, width] = useWidth();
  const sides = columns(width);
  const colours = numbered(place.agents.map(({ name }) => name));
  const most = Math.max(1, ...drawn.map(({ meetings }) => meetings));
  const isFar = (bundle) => near !== null && bundle.agent !== near && bundle.resource !== near;
  const isApart = (name) => near !== null && name !== near && !drawn.some((bundle) => !isFar(bundle) && (bundle.agent === name || bundle.resource === name));
  const wheel = (event) => {
    if (!event.ctrlKey) return;
    event.preventDefault();
    by(event.deltaY < 0 ? ZOOM_STEP : 1 / ZOOM_STEP);
  };
  const point = (name) => ({ onMouseEnter: () => setNear(name), onMouseLeave: () => setNear(null) });
  return html`<div class="graph">
    <div class="graph-tools">
      <${Forms} />
      <div class="switch" role="group" aria-label="Zoom">
        <button aria-label="Zoom out" onClick=${() => by(1 / ZOOM_STEP)}>−</button>
        <button title="Reset the zoom" onClick=${() => setZoom(1)}>${Math.round(zoom * 100)} %</button>
        <button aria-label="Zoom in" onClick=${() => by(ZOOM_STEP)}>+</button>
      </div>
    </div>
    <div class="graph-box" onWheel=${wheel} tabindex="0" role="region" aria-label="Graph; the table shows the same">
      <div ref=${box}>${width > 0 && html`<svg class=${drawn.length > MANY ? `many ${near === null ? '' : 'pointed'}` : ''} viewBox="0 0 ${width} ${place.height}" style=${{ width: `${zoom * 100}%` }} aria-hidden="true">
        ${drawn.map((bundle) => Line({ bundle, d: curve(bundle, place, sides), weight: bundle.meetings / most, isFar: isFar(bundle), isCurrent: bundle.numbers.includes(current), onOpen }))}
        ${place.agents.map((node) => html`<g class=${`node agent agent-${colours.get(node.name)} ${isApart(node.name) ? 'far' : ''}`} ...${point(node.name)}>
          <circle cx=${sides.agentX} cy=${node.y} r="5" />
          <text x=${sides.agentX - 14} y=${node.y + 4} text-anchor="end"><title>${plain(node.name)}</title>${plain(cut(node.name, sides.nameMax))}</text>
        </g>`)}
        ${place.resources.map((node) => Resource({ node, sides, isDense: place.isDense, isFar: isApart(node.name), pointed: point(node.name) }))}
      </svg>`}</div>
    </div>
  </div>`;
}

// Its name, and below or, where rows are dense, beside it the system.
function Resource({ node, sides, isDense, isFar, pointed }) {
  const { resourceX, nameMax } = sides;
  const space = node.name.indexOf(' ');
  const [system, resource] = [node.name.slice(0, space), node.name.slice(space + 1)];
  const name = plain(resource.length > nameMax ? `…${cut(halves(resource).tail, nameMax)}` : resource);
  const x = resourceX + 14;
  return html`<g class=${`node resource ${isFar ? 'far' : ''}`} ...${pointed}>
    <rect x=${resourceX - 5} y=${node.y - 5} width="10" height="10" rx="2" />
    <text x=${x} y=${node.y + (isDense ? 4 : -1)}><title>${plain(resource)}</title>${name}${isDense && html`<tspan class="small" dx="8">${plain(cut(system, 12))}</tspan>`}</text>
    ${!isDense && html`<text class="small" x=${x} y=${node.y + 12}>${plain(cut(system, nameMax))}</text>`}
  </g>`;
}

// The more meetings, the stronger.
function Line({ bundle, d, weight, isFar, isCurrent, onOpen }) {
  const { kind, agent, resource, meetings, numbers } = bundle;
  return html`<g class=${`strand ${kind} ${isFar ? 'far' : ''} ${isCurrent ? 'current' : ''}`} style=${{ strokeWidth: 1 + 2 * weight ** 2 }} data-edges=${numbers.join(' ')} onClick=${() => onOpen(numbers[0])}>
    <title>${plain(`${agent} met others ${plural(meetings, 'time')} at ${resource}; the worst: ${WORDS[kind]}`)}</title>
    <path class="hit" d=${d} /><path class="line" d=${d} />
  </g>`;
}

const LEGEND = KINDS.filter((kind) => kind !== 'read-read');

export const Forms = () => html`<ul class="forms">
  ${LEGEND.map((kind) => html`<li title=${kind}><${Form} kind=${kind} /></li>`)}
</ul>`;

export const Form = ({ kind }) => html`<span class="form">
  <svg class=${`strand ${kind}`} viewBox="0 0 34 8" width="34" height="8" aria-hidden="true"><path class="line" d="M0 4H34" /></svg>${WORDS[kind] ?? kind}
</span>`;
