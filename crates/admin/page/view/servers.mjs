// Servers and their tools: how they stand, and what people decide about them.
import { useEffect, useRef } from '../vendor/hooks.mjs';
import { Ago, Block, Command, Empty, Fault, html, Loading, ServerState, Shown, State, useAnswer, useTitle, words } from '../part/shown.mjs';
import { Action, Decision } from '../part/dialog.mjs';
import { Choice, Search } from '../part/filters.mjs';
import { List } from '../part/list.mjs';
import { count, plural } from '../format.mjs';
import { path, post, query, remove } from '../api.mjs';
import { change, go, link, place } from '../place.mjs';
import { Add } from './add.mjs';
import { Reviews } from './review.mjs';
import { Review, SideBySide } from './tool.mjs';

const STATUSES = ['callable', 'pending_approval', 'disabled_by_user', 'disabled_by_config',
  'disabled_unknown', 'schema_too_costly', 'server_disabled', 'server_quarantined'];

const WARNED_MAX = 30; // named beside their server

export function Servers() {
  const { values } = place.value;
  useTitle(values.server ? `${values.server} · Servers` : 'Servers and tools');
  const { answer, error, look } = useAnswer('/servers', ['server', 'tool', 'activity']);
  const servers = answer?.servers ?? [];
  const chosen = servers.find((server) => server.name === values.server);
  const waiting = servers.filter(({ name, quarantined }) => !quarantined && (!values.server || name === values.server)).reduce((sum, { pending }) => sum + (pending ?? 0), 0);
  return html`
    <div class="head"><h1>${values.server
      ? html`<a href=${link('servers')}>Servers</a> <span class="faint">/</span> <${Shown} text=${values.server} />` : 'Servers and tools'}</h1>
      ${waiting > 0 && html`<button class="primary" onClick=${() => change({ review: 'yes', tool: undefined })}>Review ${plural(waiting, 'item')} one by one</button>`}</div>
    <${Fault} error=${error} />
    ${!answer && !error && html`<${Loading} />`}
    ${answer && !values.server && html`<${Add} look=${look} />`}
    ${answer && values.review === 'yes' && html`<${Reviews} key=${values.server ?? ''} servers=${servers} only=${values.server} look=${look} />`}
    ${answer && !values.server && html`<${All} servers=${servers} look=${look} />`}
    ${answer && values.server && !chosen && html`<${Empty} title="Server not found" command="countersign upstream list" />`}
    ${chosen && html`<${One} server=${chosen} look=${look} />`}
    <div class="split">
      ${servers.length > 0 && html`<${Tools} />`}
      ${values.tool !== undefined && values.server && html`<${Review} key=${`${values.server} ${values.kind} ${values.tool}`} server=${values.server}
        name=${values.tool} kind=${values.kind ?? 'tool'} onClose=${() => change({ tool: undefined, kind: undefined })} onDecided=${look} />`}
    </div>`;
}

function All({ servers, look }) {
  if (!servers.length) {
    return html`<${Empty} title="No servers yet" command="countersign upstream add files -- npx -y @modelcontextprotocol/server-filesystem ~/notes">
      <p>Paste one above, or add it on the command line, for example the reference server for files. It does not start until you approve it.</p><//>`;
  }
  return html`<div class="table-box" tabindex="0" role="region" aria-label="Servers"><table class="plain servers decided">
    <thead><tr><th scope="col">Server</th><th scope="col">State</th><th scope="col" class="wide">Transport</th>
      <th scope="col" class="right">Tools</th><th scope="col" class="right">Pending</th><th scope="col" class="wide">Locked</th><th scope="col" class="wide">Actions</th></tr></thead>
    <tbody>${servers.map((server) => html`<tr key=${server.name}>
      <td class="name"><a class="strong" href=${link('servers', { server: server.name })}><${Shown} text=${server.name} /></a></td>
      <td><${ServerState} word=${server.state} /></td>
      <td class="wide faint"><${Shown} text=${server.transport} /></td>
      <td class="right">${count(server.tool_count)}</td>
      <td class="right">${server.pending ? html`<a class="warn-text" href=${link('servers', { server: server.name, status: 'pending_approval' })}>${count(server.pending)}</a>` : html`<span class="faint">0</span>`}</td>
      <td class="wide faint">${locked(server)}</td>
      <td class="wide"><div class="buttons"><${Decide} server=${server} look=${look} /></div></td>
    </tr>`)}</tbody></table></div>`;
}

const locked = (server) => Object.entries(server.tools ?? {})
  .filter(([status]) => status !== 'callable' && status !== 'pending_approval')
  .map(([status, number]) => `${number} ${words(status)}`).join(', ');

// What can be decided about a server as it stands. It is approved where it is shown: see Held.
function Decide({ server, look }) {
  const to = (verb) => async () => { await post('/servers' + path(server.name, verb)); look(); };
  if (server.state === 'quarantined' || server.quarantined) {
    return html`<${Action} label="Inspect" work=${async () => { await post('/servers' + path(server.name, 'approve') + '?inspect=true'); look(); go('servers', { server: server.name }); }} />
      ${place.value.values.server !== server.name && html`<a href=${link('servers', { server: server.name })}>Review</a>`}`;
  }
  if (server.disabled) return html`<${Action} label="Enable" work=${to('enable')} />`;
  return html`${server.state === 'needs_login' && !server.logins && html`<${Action} label="Sign in" work=${() => signIn(server.name)} />`}
    <${Decision} label="Quarantine" tone="warn" work=${to('quarantine')}
      question=${`Lock '${server.name}' and everything it lists until it is approved again?`} />
    <${Action} label="Disable" work=${to('disable')} />`;
}

// Opens the sign-in to a server in a tab of its own. The tab comes first: browsers block one that is opened later.
async function signIn(name, token) {
  const tab = window.open('about:blank');
  try {
    const { address } = await post('/servers' + path(name, 'login'), token && { token });
    if (tab) {
      tab.opener = null; // The page of others must not steer this one.
      tab.location = address;
    }
  } catch (error) {
    tab?.close();
    throw error;
  }
}

function One({ server, look }) {
  const restart = async () => { await post('/servers' + path(server.name, 'restart')); look(); };
  const { answer: review, error: fault } = useAnswer(server.pending || server.quarantined ? '/servers' + path(server.name, 'review') : null, ['tool', 'server']);
  const approveAll = async () => { await post('/servers' + path(server.name, 'approve-items'), { items: versions(review) }); look(); };
  return html`<section class="card server">
    <div class="card-head"><p><${ServerState} word=${server.state} /> <span class="faint">${plural(server.tool_count, 'tool')}</span></p>
      <div class="buttons">
        ${review?.items.length > 0 && !server.quarantined && html`<${Decision} label=${review.items.length === 1 ? 'Approve pending item' : `Approve all ${count(review.items.length)} pending`} work=${approveAll}
          question=${`Approve all pending items of '${server.name}' without reading them? Their text can then reach models.`} />`}
        <${Decide} server=${server} look=${look} />
        ${!server.disabled && server.state !== 'quarantined' && html`<${Action} label="Restart" work=${restart} />`}
        ${server.origin === 'added' && html`<${Decision} label="Remove" tone="bad" question=${`Remove '${server.name}' and all decisions about it?`}
          work=${async () => { await remove('/servers' + path(server.name)); go('servers'); }} />`}
      </div></div>
    ${server.state === 'needs_login' && html`<p class="notice warn">It needs a sign-in: use the button, or run this on the machine of the gate:</p><${Command} text=${`countersign upstream login ${server.name}${server.logins ? ' --token NAME' : ''}`} />`}
    ${server.error && html`<p class="notice bad"><${Shown} text=${server.error} max=${2000} /></p>`}
    ${(server.warnings ?? []).map((warning) => html`<p class="notice warn"><${Shown} text=${warning.text} max=${1000} /></p>`)}
    <dl class="facts">
      <dt>Transport</dt><dd><${Shown} text=${server.transport} /></dd>
      ${server.command && html`<dt>Command</dt><dd><code><${Shown} text=${[server.command, ...(server.args ?? [])].join(' ')} max=${1000} /></code></dd>`}
      ${server.url && html`<dt>Address</dt><dd><code><${Shown} text=${server.url} max=${1000} /></code></dd>`}
      ${server.env?.length > 0 && html`<dt>Environment</dt><dd><code><${Shown} text=${server.env.join(', ')} max=${1000} /></code> <span class="faint">names only</span></dd>`}
      ${server.logins && html`<dt>Sign-ins</dt><dd>${server.logins.map(({ token, signed_in }) => html`<p><code>${token}</code> ${signed_in ? 'signed in' : html`<${Action} label=${`Sign in for ${token}`} work=${() => signIn(server.name, token)} />`}</p>`)}</dd>`}
      <dt>Origin</dt><dd>${{ own: 'your config', found: 'a config file in the folder', added: 'added at run time' }[server.origin] ?? server.origin}</dd>
      ${server.approved?.at && html`<dt>Approved</dt><dd><${Ago} time=${server.approved.at} /></dd>`}
    </dl>
    <${Fault} error=${fault} />
    ${review?.quarantined && html`<${Held} review=${review} look=${look} />`}
    <${Waiting} review=${review} />
    <${Warned} server=${server} />
    <${Log} server=${server} />
  </section>`;
}

// The items of a review in the versions that it shows.
const versions = (review) => review.items.map(({ kind, name, fingerprint }) => ({ kind, name, fingerprint }));

// A server in quarantine as it would be approved. The approval is bound to what is shown here.
function Held({ review, look }) {
  const approve = async () => {
    await post('/servers' + path(review.name, 'approve'), { fingerprint: review.fingerprint, items: versions(review) });
    look();
  };
  const listed = review.listed ? `and ${plural(review.items.length, 'item')} that wait` : 'whose first list then counts as approved';
  return html`<h3>To be approved</h3>
    ${review.reason && html`<p class="notice warn"><${Shown} text=${review.reason} max=${1000} /></p>`}
    ${review.diff ? html`<${SideBySide} lines=${review.diff} />` : html`<${Block} text=${review.visible} label="Definition" />`}
    <p class="faint">${review.listed ? `The approval includes ${plural(review.items.length, 'item')} that it lists: see below.` : 'It was not started yet. Inspect shows what it lists before you approve it.'}</p>
    <div class="buttons"><${Decision} label="Approve server" tone="primary" work=${approve}
      question=${`Approve '${review.name}' as it is shown, ${listed}? Agents can call its tools then.`} /></div>`;
}

// Things that wait beside tools: instructions, prompts, templates.
function Waiting({ review }) {
  const others = (review?.items ?? []).filter((item) => item.kind !== 'tool');
  if (!others.length) return null;
  return html`<p class="notice warn">Also pending: ${others.map((item) => html` <button
    onClick=${() => change({ tool: item.name, kind: item.kind })}>${item.kind} <${Shown} text=${item.name} max=${60} /></button>`)}</p>`;
}

// Things with warnings, also those of the first list, which nobody had to approve.
function Warned({ server }) {
  const { answer } = useAnswer(server.warned ? '/servers' + path(server.name, 'items') : null, ['tool', 'server']);
  const warned = (answer?.items ?? []).filter((item) => item.warnings.length);
  if (!warned.length) return null;
  return html`<p class="notice warn">Warnings about: ${warned.slice(0, WARNED_MAX).map((item) => html` <button
    onClick=${() => change({ tool: item.name, kind: item.kind })}>${item.kind} <${Shown} text=${item.name} max=${60} /></button>`)}
    ${warned.length > WARNED_MAX && html` and ${count(warned.length - WARNED_MAX)} more`}</p>`;
}

const LOG_EVERY_MS = 2_000;

// What the server writes to its stderr, as it is written.
function Log({ server }) {
  const isOpen = place.value.values.log === 'yes';
  const { answer, error, look } = useAnswer(isOpen ? '/servers' + path(server.name, 'logs') + '?limit=200' : null, ['server']);
  const box = useRef(null);
  useEffect(() => {
    const timer = isOpen && setInterval(look, LOG_EVERY_MS);
    return () => clearInterval(timer);
  }, [isOpen]);
  // The newest line stays in sight, unless somebody reads further up.
  const isAtEnd = !box.current || box.current.scrollHeight - box.current.scrollTop - box.current.clientHeight < 40;
  useEffect(() => { if (isAtEnd && box.current) box.current.scrollTop = box.current.scrollHeight; }, [answer]);
  return html`<details open=${isOpen} onToggle=${(event) => event.target.open !== isOpen && change({ log: event.target.open ? 'yes' : '' }, { small: true })}>
    <summary>Log</summary>
    <${Fault} error=${error} />
    ${isOpen && !answer && !error && html`<${Loading} lines=${3} />`}
    ${answer && (answer.lines.length
      ? html`<pre ref=${box} class="block log" tabindex="0" role="region" aria-label="Log">${answer.lines.map((line) => html`<${Shown} text=${line} max=${2000} />${'\n'}`)}</pre>`
      : html`<p class="faint">The log is empty.</p>`)}
  </details>`;
}

const COLUMNS = [
  { name: 'Tool', class: 'tool', width: '34%', cell: (tool) => html`<span class="two-lines"><span class="strong"><${Shown} text=${tool.name} max=${120} /></span>
      <span class="faint second"><${Shown} text=${tool.description} max=${80} /></span></span>` },
  { name: 'Status', width: '170px', class: 'status', cell: (tool) => html`<${State} word=${tool.status} />` },
  { name: 'Class', width: '130px', class: 'wide', cell: (tool) => html`<span class=${'class ' + tool.class}>${tool.class}</span>${tool.unverified && html` <span class="faint" title="It has neither a read-only nor a destructive hint">?</span>`}` },
  { name: 'Description', class: 'wide', cell: (tool) => html`<span class="faint"><${Shown} text=${tool.description} max=${200} /></span>` },
];

function Tools() {
  const { values } = place.value;
  const { answer, error } = useAnswer('/tools' + query({ server: values.server, status: values.status, q: values.q }), ['tool', 'server']);
  const tools = answer?.tools ?? [];
  const ownName = (tool) => tool.name.slice(tool.server.length + 1);
  const isNarrowed = values.q || values.status;
  return html`<section class="tools" aria-label="Tools">
    <div class="filters">
      <${Search} label="Search tools" hint="what a tool does" isFirst />
      <${Choice} name="status" label="Status" options=${STATUSES} />
    </div>
    <${Fault} error=${error} />
    <p class="counted" role="status">${answer && plural(answer.total, 'tool')}</p>
    ${!answer && !error && html`<${Loading} />`}
    ${answer && tools.length === 0 && html`<${Empty} title=${isNarrowed ? 'No matching tools' : 'No tools'} command=${isNarrowed ? undefined : 'countersign upstream list'}>
      <p>${isNarrowed ? 'Change the search or the status.' : 'The servers list no tools, or are not connected yet.'}</p><//>`}
    ${tools.length > 0 && html`<${List} label="Tools" columns=${COLUMNS} count=${tools.length} rowAt=${(index) => tools[index]}
      idOf=${(tool) => tool.name} current=${values.tool === undefined ? undefined : `${values.server}:${values.tool}`}
      onOpen=${(tool) => change({ server: tool.server, tool: ownName(tool), kind: undefined })} />`}
  </section>`;
}
