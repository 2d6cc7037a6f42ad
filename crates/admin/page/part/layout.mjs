// Where agents and resources stand in the graph. Two columns: agents on the left, what they touched
// on the right. The same graph is always drawn the same way.

const ROW = 44;
const MARGIN = 24;
export const WIDE = { width: 880, agentX: 250, resourceX: 590, nameMax: 34 };
export const NARROW = { width: 390, agentX: 132, resourceX: 262, nameMax: 17 };

// Edges that are drawn; the table has them all. More would be a tangle that nobody reads.
export const STRANDS_MAX = 120;

export const KINDS = ['stale-read', 'write-write', 'read-write', 'unknown', 'read-read'];

// What each kind means, in plain words.
export const WORDS = {
  'stale-read': 'wrote after an outdated read',
  'write-write': 'both wrote',
  'read-write': 'one read, the other wrote',
  unknown: 'one or both may have written',
  'read-read': 'both only read',
};

// One strand for each resource of each edge: from the agent that came first, by way of the
// resource, to the one that came after.
export function strands(edges) {
  const found = [];
  edges.forEach((edge, number) => {
    edge.resources.forEach((resource, at) => {
      const container = edge.containers?.[at];
      const name = container === undefined ? resource : `${resource} in ${container}`;
      found.push({ edge, number, from: edge.from, to: edge.to, resource: `${edge.system} ${name}` });
    });
  });
  return found.slice(0, STRANDS_MAX);
}

// `{ agents, resources, height }`, each node with its name and y.
export function layout(drawn) {
  const agents = names(drawn.flatMap((strand) => [strand.from, strand.to]));
  const resources = names(drawn.map((strand) => strand.resource));
  const touches = drawn.flatMap((s) => [[s.from, s.resource], [s.to, s.resource]]);
  let order = { agents: [...agents].sort(), resources: [...resources].sort() };
  // Each side takes turns to stand near what it is joined to; a few turns untangle most.
  for (let turn = 0; turn < 4; turn += 1) {
    const nearAgents = sorted(order.resources, order.agents, touches.map(([a, r]) => [r, a]));
    order = { agents: sorted(order.agents, nearAgents, touches), resources: nearAgents };
  }
  const rows = Math.max(order.agents.length, order.resources.length, 1);
  const height = rows * ROW + 2 * MARGIN;
  return { agents: spread(order.agents, height), resources: spread(order.resources, height), height };
}

const names = (list) => [...new Set(list)];

function sorted(items, others, pairs) {
  const places = new Map(others.map((name, index) => [name, index]));
  const mean = new Map(items.map((name) => {
    const near = pairs.filter(([item]) => item === name).map(([, other]) => places.get(other));
    return [name, near.reduce((sum, at) => sum + at, 0) / Math.max(1, near.length)];
  }));
  return [...items].sort((a, b) => mean.get(a) - mean.get(b) || (a < b ? -1 : 1));
}

function spread(list, height) {
  const step = (height - 2 * MARGIN) / list.length;
  return list.map((name, index) => ({ name, y: MARGIN + step * (index + 0.5) }));
}

// The two halves of a strand, as paths. Strands between the same two nodes lie beside each other.
export function paths(strand, place, columns, offset) {
  const agent = new Map(place.agents.map((node) => [node.name, node.y]));
  const resource = new Map(place.resources.map((node) => [node.name, node.y]));
  const { agentX, resourceX } = columns;
  const [fromY, toY] = [agent.get(strand.from), agent.get(strand.to)];
  const atY = resource.get(strand.resource) + offset;
  const middle = (agentX + resourceX) / 2;
  return {
    first: `M${agentX + 8} ${fromY + offset} C${middle} ${fromY + offset} ${middle} ${atY} ${resourceX - 8} ${atY}`,
    second: `M${resourceX - 8} ${atY} C${middle} ${atY} ${middle} ${toY + offset} ${agentX + 12} ${toY + offset}`,
  };
}
