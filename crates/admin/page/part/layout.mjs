// Where agents and resources stand in the graph. Two columns: agents on the left, what they touched
// on the right. The same graph is always drawn the same way.

const ROW = 32;
const ROW_DENSE = 23; // one line of text
const DENSE = 14; // rows from which on they are dense
const MARGIN = 24;

// Where the two columns stand in a picture of this width.
export const columns = (width) => ({ width, agentX: 250, resourceX: Math.max(420, width - 360), nameMax: 34 });

// Lines that are drawn; the table has all edges. More would be a tangle that nobody reads.
export const LINES_MAX = 300;

export const KINDS = ['stale-read', 'write-write', 'read-write', 'unknown', 'read-read'];

// What each kind means, in plain words.
export const WORDS = {
  'stale-read': 'wrote after an outdated read',
  'write-write': 'both wrote',
  'read-write': 'one read, the other wrote',
  unknown: 'one or both may have written',
  'read-read': 'both only read',
};

// One line for each agent at each resource where it met another: all their meetings, of the kind of
// the worst. `numbers` are the edges behind it, the worst first.
export function bundles(edges) {
  const found = new Map();
  edges.forEach((edge, number) => {
    edge.resources.forEach((resource, at) => {
      const container = edge.containers?.[at];
      const name = `${edge.system} ${container === undefined ? resource : `${resource} in ${container}`}`;
      for (const agent of [edge.from, edge.to]) {
        const key = `${agent}\n${name}`;
        const bundle = found.get(key) ?? { agent, resource: name, kind: edge.kind, meetings: 0, numbers: [] };
        bundle.meetings += edge.meetings;
        bundle.numbers.push(number);
        if (KINDS.indexOf(edge.kind) < KINDS.indexOf(bundle.kind)) bundle.kind = edge.kind;
        found.set(key, bundle);
      }
    });
  });
  const rank = ({ numbers: [worst] }) => KINDS.indexOf(edges[worst].kind);
  for (const bundle of found.values()) bundle.numbers.sort((one, other) => KINDS.indexOf(edges[one].kind) - KINDS.indexOf(edges[other].kind));
  // The worst are drawn last, over the others.
  return [...found.values()].sort((one, other) => rank(one) - rank(other)).slice(0, LINES_MAX).reverse();
}

// `{ agents, resources, height, isDense }`, each node with its name and y.
export function layout(drawn) {
  const agents = names(drawn.map((bundle) => bundle.agent));
  const resources = names(drawn.map((bundle) => bundle.resource));
  const touches = drawn.map((bundle) => [bundle.agent, bundle.resource]);
  let order = { agents: [...agents].sort(), resources: [...resources].sort() };
  // Each side takes turns to stand near what it is joined to; a few turns untangle most.
  for (let turn = 0; turn < 4; turn += 1) {
    const nearAgents = sorted(order.resources, order.agents, touches.map(([a, r]) => [r, a]));
    order = { agents: sorted(order.agents, nearAgents, touches), resources: nearAgents };
  }
  const rows = Math.max(order.agents.length, order.resources.length, 1);
  const isDense = rows > DENSE;
  const height = rows * (isDense ? ROW_DENSE : ROW) + 2 * MARGIN;
  return { isDense, agents: spread(order.agents, height), resources: spread(order.resources, height), height };
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

// The line between an agent and a resource, as a path.
export function curve(bundle, place, { agentX, resourceX }) {
  const at = (nodes, name) => nodes.find((node) => node.name === name).y;
  const [fromY, toY] = [at(place.agents, bundle.agent), at(place.resources, bundle.resource)];
  const middle = (agentX + resourceX) / 2;
  return `M${agentX + 6} ${fromY} C${middle} ${fromY} ${middle} ${toY} ${resourceX - 6} ${toY}`;
}
