// What can be proved: chains, copies that were brought back, and single receipts.
import { useEffect, useState } from '../vendor/hooks.mjs';
import { get, getText, path, post, query, save } from '../api.mjs';
import { hear } from '../live.mjs';
import { change, link, place } from '../place.mjs';
import { Ago, Block, Command, Copy, Empty, Fault, html, Loading, Shown, State, useAction, useAnswer, useTitle, When } from '../part/shown.mjs';
import { Beside } from '../part/dialog.mjs';
import { List } from '../part/list.mjs';
import { bytes, count, plural, shortHash, shortId } from '../format.mjs';
import { summary } from '../part/receipt.mjs';

const PAGE = 100;

export function Receipts() {
  useTitle('Receipts');
  const { values } = place.value;
  const { answer, error } = useAnswer('/chains', ['activity'], 3_000);
  const { answer: copies } = useAnswer('/copies', []);
  // What was found, by `chain <id>`, `copy <name>` or `all chains`.
  const [found, setFound] = useState({});
  const keep = (key) => (checked) => { setFound((all) => ({ ...all, [key]: checked })); change({ checked: key }); };
  const { checked } = values;
  return html`
    <div class="head"><h1>Receipts</h1><${Export} label="Export all" file="receipts.jsonl" values=${{}} /></div>
    <${Fault} error=${error} />
    ${answer && answer.chains.length === 0 && html`<${Empty} title="No receipts yet" command="countersign call tool-read --tool-name=SERVER:TOOL">
      <p>Every call leaves a signed receipt. Make a call:</p><//>`}
    ${!answer && !error && html`<${Loading} />`}
    ${answer && answer.chains.length > 0 && html`<${Standing} chains=${answer.chains} keep=${keep('all chains')} />`}
    ${answer && answer.chains.length > 0 && html`<${Chains} chains=${answer.chains} found=${found} keep=${keep} />`}
    ${copies && html`<${Copies} copies=${copies.copies} found=${found} keep=${keep} />`}
    ${checked && found[checked] && html`<${Outcome} checks=${found[checked]} name=${checked} />`}
    <${Drop} keep=${(name, chains) => keep(`copy ${name}`)(chains)} />
    <div class="split">
      <${Entries} chain=${values.chain} />
      ${values.receipt && html`<${Receipt} key=${values.receipt} id=${values.receipt} onClose=${() => change({ receipt: '' })} />`}
    </div>`;
}

// The last verdict on the whole ledger, kept for all tabs; a small ledger is checked at once.
const VERDICT_KEY = 'countersign.verdict';
const CHECKED_AT_ONCE_MAX = 20_000;
const FRESH_MS = 600_000; // a verdict that is not asked for again

// A verdict on another ledger, at this address earlier, is none.
function lastVerdict(chains) {
  try {
    const last = JSON.parse(localStorage.getItem(VERDICT_KEY));
    return chains.some(({ id }) => id === last?.oldest) ? last : null;
  } catch {
    return null;
  }
}

function Standing({ chains, keep }) {
  const [verdict, setVerdict] = useState(() => lastVerdict(chains));
  const { isBusy, error, act } = useAction();
  const total = chains.reduce((sum, chain) => sum + chain.length, 0);
  const check = (isShown) => act(async () => {
    const answer = await get('/chains/verify');
    const found = { oldest: chains.at(-1).id, at: new Date().toISOString(), isValid: answer.valid, receipts: answer.receipts, chains: answer.chains.length };
    localStorage.setItem(VERDICT_KEY, JSON.stringify(found));
    setVerdict(found);
    if (isShown || !answer.valid) keep(answer.chains);
  });
  useEffect(() => {
    const isFresh = verdict && Date.now() - Date.parse(verdict.at) < FRESH_MS;
    if (!isFresh && total <= CHECKED_AT_ONCE_MAX) check(false);
  }, []);
  return html`<section class=${`card standing ${verdict ? (verdict.isValid ? 'good' : 'bad') : ''}`} aria-label="Verdict on the ledger" aria-live="polite"><div class="card-head">
    <p>${isBusy && !verdict ? 'Checking the ledger…' : !verdict ? 'The ledger has not been checked in this browser.'
      : verdict.isValid ? html`<strong class="good-text">✓ The ledger is intact.</strong> ${plural(verdict.receipts, 'receipt')} in ${plural(verdict.chains, 'chain')}, checked <${Ago} time=${verdict.at} />.`
        : html`<strong class="bad-text">✕ The ledger is broken.</strong> Checked <${Ago} time=${verdict.at} />.`}</p>
    <div class="buttons"><button disabled=${isBusy} aria-label=${isBusy ? 'Verifying…' : 'Verify all chains'} onClick=${() => check(true)}>${isBusy ? 'Verifying…' : 'Verify all'}</button><${Head} /></div></div>
    <${Fault} error=${error} /></section>`;
}

// A line that proves later what the ledger held now, if it is kept where the ledger is not.
function Head() {
  const [head, setHead] = useState(null);
  const { isBusy, error, act } = useAction();
  return html`<button disabled=${isBusy} onClick=${() => act(async () => setHead(await post('/checkpoints')))}>Take the head</button>
    <${Fault} error=${error} />
    ${head && html`<div class="head-line"><p class="faint">Keep this line somewhere else. <code>countersign receipt verify --head</code> checks the ledger against it.</p><${Command} text=${head.line} /></div>`}`;
}

const DROPPED_MAX = 24 * 1024 * 1024; // JSON adds to it, and the gate takes 32 MiB

// Checks an export that is dropped here, with the auditor and the keys of the gate; nothing is kept.
function Drop({ keep }) {
  const [isOver, setOver] = useState(false);
  const { isBusy, error, act } = useAction();
  const check = (file) => file && act(async () => {
    if (file.size > DROPPED_MAX) throw new Error(`'${file.name}' is larger than ${bytes(DROPPED_MAX)}: put it into the folder copies instead`);
    const answer = await post('/copies/verify', { name: file.name, text: await file.text() });
    keep(answer.name, answer.chains);
  });
  const dropped = (event) => { event.preventDefault(); setOver(false); check(event.dataTransfer.files[0]); };
  return html`<section class=${`drop ${isOver ? 'over' : ''}`} aria-label="Check an export" onDragOver=${(event) => { event.preventDefault(); setOver(true); }} onDragLeave=${() => setOver(false)} onDrop=${dropped}>
    <label>${isBusy ? 'Checking…' : 'Drop an export here to check it, or choose a file:'} <input type="file" accept=".jsonl,.json,.txt" disabled=${isBusy} onChange=${(event) => check(event.target.files[0])} /></label>
    <${Fault} error=${error} /></section>`;
}

function Chains({ chains, found, keep }) {
  const chosen = place.value.values.chain;
  return html`<section class="card"><h2>Chains</h2>
    <div class="table-box short" tabindex="0" role="region" aria-label="Chains"><table class="plain decided">
    <thead><tr><th scope="col">Chain</th><th scope="col">State</th><th scope="col" class="right">Receipts</th>
      <th scope="col" class="wide">Opened</th><th scope="col" class="wide">Last</th><th scope="col" class="wide">Last hash</th><th scope="col">Verify</th></tr></thead>
    <tbody>${chains.map((chain) => html`<tr key=${chain.id} aria-current=${chain.id === chosen ? 'true' : undefined}>
      <td><a href=${link('receipts', { chain: chain.id })} title=${chain.id}><code>${shortId(chain.id)}</code></a></td>
      <td><${State} word=${chain.status ?? 'unknown'} /></td>
      <td class="right">${count(chain.length)}</td>
      <td class="wide"><${Ago} time=${chain.opened_at} /></td>
      <td class="wide"><${Ago} time=${chain.last} /></td>
      <td class="wide"><code title=${chain.last_hash ?? ''}>${shortHash(chain.last_hash)}</code></td>
      <td><${Verify} found=${found[`chain ${chain.id}`]} name=${`chain ${shortId(chain.id)}`}
        ask=${async () => [await get('/chains' + path(chain.id, 'verify'))]} keep=${keep(`chain ${chain.id}`)} /></td>
    </tr>`)}</tbody></table></div></section>`;
}

function Copies({ copies, found, keep }) {
  return html`<section class="card"><h2>Copies</h2>
    ${copies.length === 0 && html`<p class="faint">To verify an export here, put it into the folder <code>copies</code> in the gate's home.</p>`}
    ${copies.length > 0 && html`<div class="table-box short" tabindex="0" role="region" aria-label="Copies"><table class="plain decided">
      <thead><tr><th scope="col">File</th><th scope="col" class="right">Size</th><th scope="col" class="wide">Modified</th><th scope="col">Verify</th></tr></thead>
      <tbody>${copies.map((copy) => html`<tr key=${copy.name}>
        <td class="name"><${Shown} text=${copy.name} /></td>
        <td class="right">${bytes(copy.bytes)}</td>
        <td class="wide"><${Ago} time=${copy.modified_at} /></td>
        <td><${Verify} found=${found[`copy ${copy.name}`]} name=${`copy ${copy.name}`}
          ask=${async () => (await get('/copies' + path(copy.name, 'verify'))).chains} keep=${keep(`copy ${copy.name}`)} /></td>
      </tr>`)}</tbody></table></div>`}
  </section>`;
}

function Verify({ found, ask, keep, name, label = 'Verify' }) {
  const { isBusy, error, act } = useAction();
  const isWhole = found?.length > 0 && found.every((check) => check.valid);
  return html`<div class="buttons verify"><button disabled=${isBusy} aria-label=${isBusy ? `Verifying… ${name}` : `Verify ${name}`} onClick=${() => act(async () => keep(await ask()))}>${isBusy ? 'Verifying…' : label}</button>
    ${found && html`<span class=${isWhole ? 'good-text' : 'bad-text'}>${isWhole ? '✓ intact' : '✕ broken'}</span>`}
    <${Fault} error=${error} /></div>`;
}

const MARKS = [
  { name: 'No.', width: '76px', class: 'right holds', cell: (row) => count(row.index + 1) },
  { name: 'Receipt', class: 'wide', cell: (row) => html`<code>${row.receipt_id ? shortId(row.receipt_id) : 'unreadable'}</code>` },
  ...[['Signature', 'signature_valid'], ['Link', 'hash_link_valid'], ['Order', 'sequence_valid']].map(([name, member]) => ({
    name, width: '100px', class: 'holds', cell: (row) => (row[member] ? html`<span class="good-text">✓ valid</span>` : html`<strong class="bad-text">✕ broken</strong>`),
  })),
];

// What was found, receipt by receipt. The list begins where a chain is broken.
function Outcome({ checks, name }) {
  const isCopy = name.startsWith('copy ');
  const title = isCopy ? html`Copy <${Shown} text=${name.slice(5)} />` : name.startsWith('chain ') ? html`Chain <code>${shortId(name)}</code>` : 'All chains';
  return html`<section class="card outcome" aria-live="polite"><div class="card-head">
      <h2>${title}</h2>
      <button class="quiet" onClick=${() => change({ checked: '' })}>✕ close</button></div>
    ${checks.length === 0 && html`<p class="notice bad">It contains no receipts.</p>`}
    ${checks.map((check) => html`<div key=${check.chain_id}>
      ${check.valid
        ? html`<p class="notice good"><strong>✓ Intact.</strong> ${plural(check.length, 'receipt')}: all signatures, links and sequence numbers are valid.</p>`
        : html`<p class="notice bad"><strong>✕ Broken${check.broken_at === null ? '' : ` at receipt ${count(check.broken_at + 1)} of ${count(check.length)}`}.</strong> <${Shown} text=${check.error?.replace(/^receipt at index \d+: /, '')} max=${1000} /></p>`}
      ${check.receipts && html`<div class="marks" style=${{ height: `${Math.min(250, 40 + check.receipts.length * 52)}px` }}><${List} label="Receipts of the chain" columns=${MARKS} count=${check.receipts.length}
        rowAt=${(index) => check.receipts[index]} idOf=${(row) => String(row.index)} jump=${check.broken_at}
        current=${check.broken_at === null ? undefined : String(check.broken_at)}
        onOpen=${isCopy ? undefined : (row) => change({ receipt: row.receipt_id })} /></div>`}</div>`)}
  </section>`;
}

const COLUMNS = [
  { name: 'No.', width: '72px', class: 'right', cell: (row) => count(row.sequence) },
  { name: 'When', width: '96px', class: 'when', cell: (row) => html`<${Ago} time=${row.timestamp} dated />` },
  { name: 'Status', width: '116px', class: 'wide', cell: (row) => html`<${State} word=${row.status} />` },
  { name: 'Tool', class: 'tool', cell: (row) => html`<span class="two-lines"><span class="strong"><${Shown} text=${row.tool_name || '–'} max=${100} /></span><span class="faint second">${row.action_type}</span></span>` },
  { name: 'Action', class: 'wide', cell: (row) => html`<span class="faint">${row.action_type}</span>` },
  { name: 'Risk', width: '90px', class: 'wide', cell: (row) => row.risk_level },
  { name: 'Hash', width: '130px', class: 'wide', cell: (row) => html`<code title=${row.hash}>${shortHash(row.hash)}</code>` },
];

function Entries({ chain }) {
  const [rows, setRows] = useState({ chain: null, list: [], next: undefined, total: 0 });
  const [error, setError] = useState(null);
  const ask = async (cursor, before) => {
    try {
      const answer = await get('/receipts' + query({ chain, limit: PAGE, cursor }));
      setRows({ chain, list: [...before, ...answer.receipts], next: answer.next_cursor, total: answer.total });
    } catch (refused) {
      setError(refused);
    }
  };
  useEffect(() => {
    ask(undefined, []);
    let timer = null;
    const end = hear('activity', () => { timer ??= setTimeout(() => { timer = null; setRows((last) => { if (last.list.length <= PAGE) ask(undefined, []); return last; }); }, 2_000); });
    return () => { end(); clearTimeout(timer); };
  }, [chain]);
  const onSight = (first, last) => {
    if (rows.next && last >= rows.list.length) { const next = rows.next; setRows({ ...rows, next: null }); ask(next, rows.list); }
  };
  if (rows.total === 0 && !error) return null;
  return html`<section class="entries" aria-label="Receipts">
    <div class="card-head"><h2>${chain ? html`Receipts of chain <code title=${chain}>${shortId(chain)}</code>` : 'All receipts'} <span class="faint">${count(rows.total)}</span></h2>
      ${chain && html`<div class="buttons"><${Export} label="Export this chain" file=${`chain-${shortId(chain)}.jsonl`} values=${{ chain }} /><a href=${link('receipts')}>All receipts</a></div>`}</div>
    <${Fault} error=${error} />
    ${rows.list.length > 0 && html`<${List} label="Receipts, newest first" columns=${COLUMNS} count=${rows.list.length} rowAt=${(index) => rows.list[index]}
      idOf=${(row) => row.id} current=${place.value.values.receipt} onOpen=${(row) => change({ receipt: row.id })} onSight=${onSight} />`}
  </section>`;
}

// What it says in words, its place in the chain, and then as it was signed.
function Receipt({ id, onClose }) {
  const [text, setText] = useState(null);
  const [error, setError] = useState(null);
  const { answer } = useAnswer('/chains', []);
  useEffect(() => { getText('/receipts' + path(id)).then(setText, setError); }, [id]);
  const told = text === null ? null : summary(text);
  const length = answer?.chains.find((chain) => chain.id === told?.chain)?.length;
  return html`<${Beside} title=${html`Receipt <code>${shortId(id)}</code>`} onClose=${onClose}>
    <${Fault} error=${error} />
    ${text === null && !error && html`<${Loading} />`}
    ${told && html`<p class="story"><${Shown} text=${told.sentence} max=${1000} /></p>
      <dl class="facts">
        <dt>When</dt><dd><${When} time=${told.at} /></dd>
        <dt>Action</dt><dd><${Shown} text=${told.action} />, risk <${Shown} text=${told.risk} /></dd>
        <dt>Outcome</dt><dd><${State} word=${told.outcome} /></dd>
        ${told.targets.length > 0 && html`<dt>Targets</dt><dd>${told.targets.map((target) => html`<div><${Shown} text=${target} max=${400} /></div>`)}</dd>`}
        <dt>Place</dt><dd>number ${count(told.sequence)}${length && html` of ${count(length)}`} in <a href=${link('receipts', { chain: told.chain })}>chain <code>${shortId(told.chain)}</code></a></dd>
        <dt>Follows</dt><dd>${told.previous ? html`<code title=${told.previous}>${shortHash(told.previous)}</code>` : 'nothing: it is the first'}</dd>
        <dt>Verdict</dt><dd><${Proof} id=${id} chain=${told.chain} /></dd>
        <dt>Signed by</dt><dd><code><${Shown} text=${told.signer} max=${200} /></code></dd>
        <dt>Record</dt><dd><a href=${link('activity', { open: id.replace(/^urn:receipt:/, '') })}>Show its record</a></dd>
      </dl>`}
    ${text !== null && html`<h3>As it was signed</h3><div class="payload"><div class="payload-tools"><${Copy} text=${text} what="the receipt" /></div><${Block} text=${laidOut(text)} label="The receipt as JSON" /></div>`}
  <//>`;
}

// Verifies the chain of a receipt, and says how the receipt itself came out.
function Proof({ id, chain }) {
  const [found, setFound] = useState(null);
  const keep = ([report]) => setFound([{ ...report, mine: report.receipts.find((row) => row.receipt_id.endsWith(id)) }]);
  const mine = found?.[0].mine;
  const faults = [['signature', 'signature_valid'], ['link', 'hash_link_valid'], ['order', 'sequence_valid']]
    .filter(([, member]) => !mine?.[member]).map(([name]) => name);
  return html`<${Verify} found=${found} keep=${keep} name="receipt" ask=${async () => [await get('/chains' + path(chain, 'verify'))]} />
    ${found && (faults.length ? html`<span class="bad-text">not valid: ${faults.join(', ')}</span>` : html`<span class="good-text">signature, link and order are valid</span>`)}`;
}

function laidOut(text) {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}

function Export({ label, file, values }) {
  const { isBusy, error, act } = useAction();
  return html`<div class="buttons"><${Fault} error=${error} />
    <button disabled=${isBusy} onClick=${() => act(() => save('/receipts/export' + query(values), file))}>${label}</button></div>`;
}
