// What a receipt says, in words. It is read leniently: whatever is missing is left out, and the text
// that was signed is shown below it.

const DID = { success: 'succeeded', failure: 'failed', pending: 'has no known outcome' };

// Null if the text is no receipt.
export function summary(text) {
  let receipt;
  try {
    receipt = JSON.parse(text);
  } catch {
    return null;
  }
  const subject = receipt?.credentialSubject;
  if (!subject?.action || !subject.chain) return null;
  const { action, outcome, chain, principal } = subject;
  const runtime = receipt.issuer?.runtime ?? {};
  const who = runtime.agent_id ?? principal?.id ?? 'somebody';
  const what = runtime.tool ? `called ${[runtime.server, runtime.tool].filter(Boolean).join(':')}` : `did ${action.type}`;
  const targets = targetsOf(action, runtime);
  const on = targets.length ? ` on ${targets[0]}` : '';
  const why = runtime.reason ? `, saying “${runtime.reason}”` : '';
  const error = outcome?.error ? `: ${outcome.error}` : '';
  return {
    sentence: `${who} ${what}${on}${why}. It ${DID[outcome?.status] ?? DID.pending}${error}.`,
    at: action.timestamp, action: action.type, risk: action.risk_level ?? 'unknown', outcome: outcome?.status ?? 'unknown',
    targets, chain: chain.chain_id, sequence: chain.sequence, previous: chain.previous_receipt_hash,
    signer: receipt.proof?.verificationMethod ?? receipt.issuer?.id ?? '',
  };
}

function targetsOf(action, runtime) {
  const all = [action.target, ...(Array.isArray(runtime.targets) ? runtime.targets : [])].filter((target) => target?.resource);
  return [...new Set(all.map(({ system, resource }) => (system && system !== 'filesystem' ? `${system} ${resource}` : resource)))];
}
