// The graph of contention: who touched what, and whose touch met another's. Each kind has a colour
// and a form. The table beside it says the same, so this picture is hidden from screen readers.
import { useState } from '../vendor/hooks.mjs';
import { html } from './shown.mjs';
import { useNarrow } from './list.mjs';
import { KINDS, layout, NARROW, paths, strands, WIDE, WORDS } from './layout.mjs';
import { cut, plain } from '../text.mjs';

const ZOOM_STEP = 1.25;
const ZOOM_MIN = 0.5;
const ZOOM_MAX = 4;

export function Graph({ edges, current, onOpen }) {
  const [zoom, setZoom] = useState(1);
  const by = (factor) => setZoom((last) => Math.min(ZOOM_MAX, Math.max(ZOOM_MIN, last * factor)));
  const drawn = strands(edges);
  const place = layout(drawn);
  const columns = useNarrow() ? NARROW : WIDE;
  const wheel = (event) => {
    if (!event.ctrlKey) return;
    event.preventDefault();
    by(event.deltaY < 0 ? ZOOM_STEP : 1 / ZOOM_STEP);
  };
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
      <svg viewBox="0 0 ${columns.width} ${place.height}" style=${{ width: `${zoom * 100}%` }} aria-hidden="true">
        <defs>${KINDS.map(Arrow)}</defs>
        ${drawn.map((strand, index) => Strand({ strand, place, columns, offset: offset(drawn, index), current, onOpen }))}
        ${place.agents.map((node) => html`<g class="node agent">
          <circle cx=${columns.agentX} cy=${node.y} r="7" />
          <text x=${columns.agentX - 14} y=${node.y + 4} text-anchor="end"><title>${plain(node.name)}</title>${plain(cut(node.name, columns.nameMax))}</text>
        </g>`)}
        ${place.resources.map((node) => Resource({ node, columns }))}
      </svg>
    </div>
  </div>`;
}

function Resource({ node, columns }) {
  const { resourceX, nameMax } = columns;
  const space = node.name.indexOf(' ');
  const [system, resource] = [node.name.slice(0, space), node.name.slice(space + 1)];
  return html`<g class="node resource">
    <rect x=${resourceX - 7} y=${node.y - 7} width="14" height="14" rx="2" />
    <text x=${resourceX + 14} y=${node.y - 1}><title>${plain(resource)}</title>${plain(cut(resource, nameMax))}</text>
    <text class="small" x=${resourceX + 14} y=${node.y + 12}>${plain(cut(system, nameMax))}</text>
  </g>`;
}

// Strands that share a resource and an agent are drawn beside each other.
function offset(drawn, index) {
  const same = drawn.filter((other) => other.resource === drawn[index].resource);
  const at = same.indexOf(drawn[index]);
  return (at - (same.length - 1) / 2) * Math.min(6, 18 / Math.max(1, same.length));
}

function Strand({ strand, place, columns, offset, current, onOpen }) {
  const { first, second } = paths(strand, place, columns, offset);
  const { kind } = strand.edge;
  const isCurrent = current === strand.number;
  const open = () => onOpen(strand.number);
  return html`<g class=${`strand ${kind} ${isCurrent ? 'current' : ''}`} data-edge=${strand.number} onClick=${open}>
    <title>${plain(`${WORDS[kind]}: ${strand.from}, then ${strand.to}, on ${strand.resource}`)}</title>
    <path class="hit" d=${first} /><path class="hit" d=${second} />
    <path class="line" d=${first} />
    <path class="line" d=${second} marker-end=${`url(#arrow-${kind})`} />
  </g>`;
}

const Arrow = (kind) => html`<marker id=${`arrow-${kind}`} class=${`arrow ${kind}`} viewBox="0 0 10 10" refX="9" refY="5"
  markerUnits="userSpaceOnUse" markerWidth="11" markerHeight="11" orient="auto"><path d="M0 0L10 5L0 10z" /></marker>`;

const LEGEND = KINDS.filter((kind) => kind !== 'read-read');

export const Forms = () => html`<ul class="forms">
  ${LEGEND.map((kind) => html`<li title=${kind}><${Form} kind=${kind} /></li>`)}
</ul>`;

export const Form = ({ kind }) => html`<span class="form">
  <svg class=${`strand ${kind}`} viewBox="0 0 34 8" width="34" height="8" aria-hidden="true"><path class="line" d="M0 4H34" /></svg>${WORDS[kind] ?? kind}
</span>`;
