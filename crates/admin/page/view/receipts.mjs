// What can be proved: chains, copies that were brought back, and single receipts.
import { useEffect, useState } from '../vendor/hooks.mjs';
import { get, getText, path, query, save } from '../api.mjs';
import { hear } from '../live.mjs';
import { change, link, place } from '../place.mjs';
import { Ago, Block, Empty, Fault, html, Shown, State, useAction, useAnswer, useTitle } from '../part/shown.mjs';
import { Beside } from '../part/dialog.mjs';
import { List } from '../part/list.mjs';
import { bytes, count, plural, shortHash, shortId } from '../format.mjs';

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
    ${answer && answer.chains.length > 0 && html`<${Chains} chains=${answer.chains} found=${found} keep=${keep} />`}
    ${copies && html`<${Copies} copies=${copies.copies} found=${found} keep=${keep} />`}
    ${checked && found[checked] && html`<${Outcome} checks=${found[checked]} name=${checked} />`}
    <div class="split">
      <${Entries} chain=${values.chain} />
      ${values.receipt && html`<${Receipt} key=${values.receipt} id=${values.receipt} onClose=${() => change({ receipt: '' })} />`}
    </div>`;
}

function Chains({ chains, found, keep }) {
  const chosen = place.value.values.chain;
  return html`<section class="card"><div class="card-head"><h2>Chains</h2>
    <${Verify} found=${found['all chains']} name="all chains" label="Verify all" ask=${async () => (await get('/chains/verify')).chains} keep=${keep('all chains')} /></div>
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
  return html`<div class="buttons verify"><button disabled=${isBusy} aria-label=${`Verify ${name}`} onClick=${() => act(async () => keep(await ask()))}>${isBusy ? 'Verifying…' : label}</button>
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
  { name: 'When', width: '96px', class: 'when', cell: (row) => html`<${Ago} time=${row.timestamp} />` },
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

// As it was signed, laid out for reading.
function Receipt({ id, onClose }) {
  const [text, setText] = useState(null);
  const [error, setError] = useState(null);
  useEffect(() => { getText('/receipts' + path(id)).then(setText, setError); }, [id]);
  return html`<${Beside} title=${html`Receipt <code>${shortId(id)}</code>`} onClose=${onClose}>
    <${Fault} error=${error} />
    <p><a href=${link('activity', { open: id.replace(/^urn:receipt:/, '') })}>Show its record</a></p>
    ${text !== null && html`<${Block} text=${laidOut(text)} label="The receipt as JSON" />`}
  <//>`;
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
