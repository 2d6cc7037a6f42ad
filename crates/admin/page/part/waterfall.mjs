// Where the steps of a run, the texts of their agents and their calls stand on one time axis. Pure.

// The period of a run: to its end, or to now while it goes on.
export function axis(run, now) {
  const from = Date.parse(run.started_at);
  const steps = run.steps ?? [];
  const last = Math.max(from + 1, ...steps.map((step) => Date.parse(step.ended_at ?? step.started_at)));
  const to = run.ended_at ? Date.parse(run.ended_at) : run.status === 'running' ? Math.max(now, last) : last;
  return { from, to: Math.max(from + 1, to) };
}

// In per cent of the axis; never so short that it cannot be seen.
const SEEN_MIN = 0.4;
export function bar({ from, to }, start, end) {
  const part = (time) => Math.min(100, Math.max(0, ((time - from) / (to - from)) * 100));
  const left = Math.min(part(start), 100 - SEEN_MIN);
  return { left, width: Math.max(SEEN_MIN, part(end) - left) };
}

// What an agent did within a step, in order: texts and calls.
export function events(step) {
  const texts = (step.texts ?? []).map((text) => ({ kind: text.kind === 'error' ? 'error' : 'text', at: Date.parse(text.timestamp), text: text.text }));
  const calls = (step.calls ?? []).map((call) => ({ kind: 'call', at: Date.parse(call.timestamp), end: Date.parse(call.timestamp) + (call.duration_ms ?? 0), call }));
  return [...texts, ...calls].sort((one, other) => one.at - other.at);
}

// Round places on the axis, in milliseconds from its beginning.
const STEPS_MS = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 15e3, 3e4, 6e4, 12e4, 3e5, 6e5, 9e5, 18e5, 36e5, 72e5, 144e5, 432e5, 864e5];
export function ticks({ from, to }, most = 6) {
  const step = STEPS_MS.find((size) => (to - from) / size <= most) ?? (to - from) / most;
  const found = [];
  for (let at = 0; at <= (to - from) * 0.92; at += step) found.push(at);
  return found;
}
