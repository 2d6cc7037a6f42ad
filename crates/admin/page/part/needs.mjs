// What needs a person, the worst first, each with the place of its cure. Pure: made of what the gate
// says about itself.
import { plural, shortId } from '../format.mjs';
import { link } from '../place.mjs';

// `[{ tone, name, text, cure, href, command }]`; `name` and `text` may hold text of others.
export function needs({ status, servers, chains, bypasses, stale }) {
  return [
    ...ofLedger(status),
    ...(chains ?? []).filter(({ status: state }) => state === 'damaged').map(({ id }) => ({
      tone: 'bad', name: `Chain ${shortId(id)}`, text: 'is damaged: its end is missing', cure: 'Verify', href: link('receipts', { chain: id }) })),
    ...(bypasses > 0 ? [{ tone: 'bad', name: plural(bypasses, 'action'), text: 'of agents bypassed the gate in the last day', cure: 'Show', href: link('activity', { q: BYPASS_WORDS, since: '24h' }) }] : []),
    ...(servers ?? []).flatMap(ofServer),
    ...(stale > 0 ? [{ tone: 'warn', name: plural(stale, 'time'), text: `in the last day, an agent wrote after an outdated read`, cure: 'Show', href: link('contention', { kind: 'stale-read', since: '24h' }) }] : []),
  ].sort((one, other) => TONES.indexOf(one.tone) - TONES.indexOf(other.tone));
}

const TONES = ['bad', 'warn', 'quiet'];

// Records of bypasses have these words.
export const BYPASS_WORDS = 'bypassing the gate';

function ofLedger(status) {
  const found = [];
  if (status?.ledger.state === 'failing') found.push({ tone: 'bad', name: 'The ledger', text: `cannot be written: ${status.ledger.last_error ?? ''}`, cure: 'Check', command: 'countersign ledger check' });
  if (status?.config.state === 'rejected') found.push({ tone: 'bad', name: 'The config file', text: `is not in effect: ${status.config.error ?? ''}`, cure: 'Check', command: 'countersign config check' });
  for (const notice of status?.ledger.notices ?? []) found.push({ tone: 'warn', name: 'The ledger', text: notice, cure: 'Check', command: 'countersign ledger check' });
  return found;
}

function ofServer({ name, state, error, pending, quarantined, login }) {
  const there = link('servers', { server: name });
  if (quarantined || state === 'quarantined') return [{ tone: 'warn', name, text: 'is in quarantine until somebody reviews it', cure: 'Review', href: there }];
  const found = [];
  if (state === 'needs_login') found.push({ tone: 'warn', name, text: 'needs a sign-in', cure: 'Sign in', href: there, command: login?.command ?? `countersign upstream login ${name}` });
  if (state === 'error') found.push({ tone: 'bad', name, text: `is down: ${error ?? ''}`, cure: 'Open', href: there });
  if (pending > 0) found.push({ tone: 'warn', name, text: `has ${plural(pending, 'item')} to review`, cure: 'Review', href: link('servers', { server: name, review: 'yes' }) });
  return found;
}
