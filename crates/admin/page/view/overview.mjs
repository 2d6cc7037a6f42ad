// How things are, at a glance: first what needs a person, then calls by class over time, who is busy,
// whether servers and ledger are well.
import { useMemo } from '../vendor/hooks.mjs';
import { query } from '../api.mjs';
import { Copy, Empty, Fault, html, Loading, ServerState, Shown, State, useAnswer, useTitle } from '../part/shown.mjs';
import { Chart, Legend } from '../part/chart.mjs';
import { Switch } from '../part/filters.mjs';
import { BYPASS_WORDS, needs } from '../part/needs.mjs';
import { count, plural, shortHash, shortId, took } from '../format.mjs';
import { link, place } from '../place.mjs';

const PERIODS = [['1h', '1 hour'], ['24h', '24 hours'], ['7d', '7 days'], ['30d', '30 days']];
const PERIOD_MS = { '1h': 3_600_000, '24h': 86_400_000, '7d': 604_800_000, '30d': 2_592_000_000 };
const TOP = 6; // of the busiest
const SERVERS_MAX = 12;

export function Overview() {
  useTitle('Overview');
  const period = place.value.values.period ?? '1h';
  const { answer: summary, error } = useAnswer(`/activity/summary?period=${period}`, ['activity']);
  const { answer: status } = useAnswer('/status', ['activity', 'ledger', 'server', 'tool'], 2_000);
  const { answer: servers } = useAnswer('/servers', ['server', 'tool']);
  return html`
    <div class="head"><h1>Overview</h1>
      <${Switch} name="period" label="Period" options=${PERIODS} fallback="1h" /></div>
    <${Needs} status=${status} servers=${servers?.servers} />
    <${Fault} error=${error} />
    ${!summary && !error && html`<${Loading} />`}
    ${summary && html`<${Figures} summary=${summary} period=${period} />`}
    <section class="card" aria-label="Calls over time">
      <div class="card-head"><h2>${summary?.bucket_seconds === 60 ? 'Calls per minute' : 'Calls'}</h2><${Legend} /></div>
      ${summary && summary.calls === 0 && html`<${Nothing} />`}
      ${summary && summary.calls > 0 && html`<${Chart} buckets=${summary.buckets} seconds=${summary.bucket_seconds} />`}
    </section>
    <div class="cards">
      <div class="column">
        ${summary && html`<${Tools} summary=${summary} />`}
        ${summary && html`<${Agents} summary=${summary} />`}</div>
      <div class="column">
        ${servers && html`<${Health} servers=${servers.servers} summary=${summary} />`}
        ${status && html`<${Ledger} status=${status} />`}</div>
    </div>`;
}

const NEEDS_MAX = 8;

function Needs({ status, servers }) {
  const start = useMemo(() => new Date(Date.now() - 86_400_000).toISOString(), []);
  const { answer: chains } = useAnswer('/chains', [], 5_000);
  const { answer: bypasses } = useAnswer('/activity' + query({ q: BYPASS_WORDS, start_time: start, limit: 1 }), ['activity'], 5_000);
  const { answer: contention } = useAnswer('/contention' + query({ kind: 'stale-read', start_time: start }), ['contention'], 5_000);
  if (!status || !servers) return html`<section class="card"><${Loading} lines=${3} /></section>`;
  const stale = (contention?.edges ?? []).reduce((sum, edge) => sum + edge.meetings, 0);
  const found = needs({ status, servers, chains: chains?.chains, bypasses: bypasses?.total ?? 0, stale });
  return html`<section class="card needs" aria-label="What needs you">
    <h2>${found.length === 0 ? html`<span class="good-text">✓</span> Nothing needs you` : 'Needs you'}</h2>
    ${found.length > 0 && html`<ul>${found.slice(0, NEEDS_MAX).map((need) => html`<li key=${`${need.name} ${need.text}`} class=${need.tone}>
      <span class="need-text"><strong><${Shown} text=${need.name} max=${80} /></strong> <${Shown} text=${need.text} max=${240} /></span>
      ${need.command && html`<code>${need.command}</code><${Copy} text=${need.command} what="the command" isSmall />`}
      ${need.href && html`<a class="button" href=${need.href}>${need.cure}</a>`}</li>`)}</ul>`}
    ${found.length > NEEDS_MAX && html`<p class="faint">and ${count(found.length - NEEDS_MAX)} more</p>`}
  </section>`;
}

const Nothing = () => html`<${Empty} title="No calls in this period" command="countersign call tool-read --tool-name=SERVER:TOOL">
  <p>Connect an agent (<code>countersign serve</code> prints how), or make a call yourself:</p>
<//>`;

function Figures({ summary, period }) {
  const { by_status: status, duration_ms: took_ms } = summary;
  const since = new Date(Date.now() - PERIOD_MS[period]).toISOString();
  const figure = (name, number, values, tone) => html`<li class=${number ? tone : ''}>
    <a href=${link('activity', { ...values, start_time: since })}><span class="figure">${number}</span><span>${name}</span></a></li>`;
  return html`<ul class="figures">
    ${figure('calls', count(summary.calls), { type: '' })}
    ${figure('refused', count(status.blocked), { status: 'blocked' }, status.blocked && 'warn')}
    ${figure('failed', count(status.error), { status: 'error' }, status.error && 'bad')}
    ${status.unknown > 0 && figure('outcome unknown', count(status.unknown), { status: 'unknown' }, 'warn')}
    ${figure('running', count(status.pending), { status: 'pending' })}
    <li><span class="figure">${took(took_ms.p50 || null)}</span><span>median duration</span></li>
    <li><span class="figure">${took(took_ms.p95 || null)}</span><span>95th percentile</span></li>
  </ul>`;
}

const Tools = ({ summary }) => html`<${Tally} title="Busiest tools"
  rows=${summary.by_tool.slice(0, TOP).map((row) => [row, `${row.server}:${row.tool}`, { server: row.server, tool: row.tool }])} />`;

const Agents = ({ summary }) => html`<${Tally} title="Busiest agents"
  rows=${summary.by_agent.slice(0, TOP).map((row) => [row, row.agent, { agent: row.agent }])} />`;

const Tally = ({ title, rows }) => html`<section class="card"><table class="plain">
  <thead><tr><th scope="col"><h2>${title}</h2></th><th scope="col" class="right">calls</th><th scope="col" class="right">refused</th><th scope="col" class="right">failed</th></tr></thead>
  <tbody>${rows.map(([row, name, values]) => html`<tr>
    <td class="name"><a href=${link('activity', values)}><${Shown} text=${name} max=${80} /></a></td>
    <${Counts} row=${row} />
  </tr>`)}
  ${rows.length === 0 && html`<tr><td class="faint" colspan="4">None yet.</td></tr>`}</tbody>
</table></section>`;

const Counts = ({ row, last = 'right' }) => html`
  <td class="right">${count(row?.calls)}</td>
  <td class=${'right ' + (row?.blocked ? 'warn-text' : 'faint')}>${count(row?.blocked)}</td>
  <td class=${last + (row?.errors ? ' bad-text' : ' faint')}>${count(row?.errors)}</td>`;

// How the servers are, the busiest first.
function Health({ servers, summary }) {
  const counts = new Map((summary?.by_server ?? []).map((row) => [row.server, row]));
  const calls = (server) => counts.get(server.name)?.calls ?? 0;
  const busiest = [...servers].sort((a, b) => calls(b) - calls(a));
  return html`<section class="card">
    ${servers.length === 0 && html`<h2>Servers</h2><${Empty} title="No servers yet" command="countersign upstream add NAME -- COMMAND" />`}
    ${servers.length > 0 && html`<table class="plain">
      <thead><tr><th scope="col"><h2>Servers</h2></th><th scope="col">state</th><th scope="col" class="right wide">pending</th><th scope="col" class="right wide">warnings</th>
        <th scope="col" class="right">calls</th><th scope="col" class="right">refused</th><th scope="col" class="right wide">failed</th></tr></thead>
      <tbody>${busiest.slice(0, SERVERS_MAX).map((server) => html`<tr>
        <td class="name"><a href=${link('servers', { server: server.name })}><${Shown} text=${server.name} /></a></td>
        <td><${ServerState} word=${server.state} /></td>
        <td class=${'right wide ' + (server.pending ? 'warn-text' : 'faint')}>${count(server.pending)}</td>
        <td class=${'right wide ' + (server.warned ? 'warn-text' : 'faint')}>${count(server.warned)}</td>
        <${Counts} row=${counts.get(server.name)} last="right wide" />
      </tr>`)}</tbody></table>`}
    ${servers.length > SERVERS_MAX && html`<p><a href=${link('servers')}>All ${count(servers.length)} servers</a></p>`}
  </section>`;
}

function Ledger({ status }) {
  const { ledger, config } = status;
  return html`<section class="card"><h2>Ledger</h2>
    <dl class="facts">
      <dt>State</dt><dd><${State} word=${ledger.state} /></dd>
      ${ledger.last_error && html`<dt>Fault</dt><dd class="bad-text">${ledger.last_error}</dd>`}
      ${ledger.notices.map((notice) => html`<dt>Notice</dt><dd class="warn-text">${notice}</dd>`)}
      <dt>Chain</dt><dd>${ledger.chain
        ? html`<a href=${link('receipts', { chain: ledger.chain })}><code>${shortId(ledger.chain)}</code></a>` : html`<span class="faint">starts with the first call</span>`}</dd>
      <dt>Length</dt><dd>${plural(ledger.length, 'receipt')}</dd>
      <dt>Last hash</dt><dd><code title=${ledger.last_hash ?? ''}>${shortHash(ledger.last_hash) || '–'}</code></dd>
      <dt>Waiting to be written</dt><dd>${count(ledger.queue)}</dd>
      <dt>Configuration</dt><dd>${config.state === 'ok' ? html`<${State} word="ok" />` : html`<span class="bad-text pre-line">${config.error}</span>`}</dd>
      <dt>Uptime</dt><dd>${took(status.uptime_seconds * 1_000)}, version ${status.version}</dd>
    </dl>
  </section>`;
}
