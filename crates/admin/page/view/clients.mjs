// Programs that agents run in: how to connect each, and what was last seen of it.
import { Ago, Command, Empty, Fault, html, Loading, Shown, useAnswer, useTitle } from '../part/shown.mjs';
import { link } from '../place.mjs';
import { plural } from '../format.mjs';

// The name on the command line, the name of the product, and how it names itself to servers.
const CLIENTS = [
  ['claude', 'Claude Code', /^claude-code/i],
  ['claude-desktop', 'Claude Desktop', /^claude-ai/i],
  ['cursor', 'Cursor', /^cursor/i],
  ['vscode', 'VS Code', /^(visual studio code|vscode)/i],
  ['codex', 'Codex', /^codex/i],
  ['gemini', 'Gemini CLI', /^gemini/i],
  ['opencode', 'OpenCode', /^opencode/i],
  ['windsurf', 'Windsurf', /^windsurf/i],
  ['zed', 'Zed', /^zed/i],
];
const SEEN_MAX = 50;

export function Clients() {
  useTitle('Clients');
  const { answer, error } = useAnswer('/agents', ['activity'], 3_000);
  const agents = answer?.agents ?? [];
  return html`
    <div class="head"><h1>Clients</h1></div>
    <p class="lead">Connect a client with one command. It shows the change to the client's file first, keeps a backup, and <code>--undo</code> takes it back.</p>
    <${Fault} error=${error} />
    ${!answer && !error && html`<${Loading} />`}
    ${answer && html`<div class="clients">${CLIENTS.map(([name, title, pattern]) => html`<${Client} key=${name} name=${name} title=${title} seen=${agents.filter(({ client }) => pattern.test(client))} />`)}</div>
      <section class="card"><h2>Any other client</h2><div class="cards">
        <div class="column"><p class="faint">Over stdio:</p><${Command} text="countersign mcp" /></div>
        <div class="column"><p class="faint">Over HTTP, with a <a href=${link('tokens')}>token</a> as <code>Authorization: Bearer …</code>:</p><${Command} text=${`${location.origin}/mcp`} /></div></div></section>
      <${Seen} agents=${agents} />`}`;
}

function Client({ name, title, seen }) {
  const [last] = seen;
  return html`<section class="card client"><div class="card-head"><h2>${title}</h2>
      ${last ? html`<span class="good-text">seen <${Ago} time=${last.last_call} /></span>` : html`<span class="faint">not seen yet</span>`}</div>
    <${Command} text=${`countersign connect ${name}`} />
    ${last && html`<p class="faint"><${Shown} text=${last.client} max=${60} />, <a href=${link('activity', { agent: last.name.split('#')[0] })}>${plural(seen.length, 'session')}</a></p>`}
  </section>`;
}

function Seen({ agents }) {
  if (!agents.length) return html`<${Empty} title="No agent has made a call yet"><p>Connect one above; its calls appear under Activity.</p><//>`;
  return html`<section class="card"><h2>Agents seen</h2><div class="table-box" tabindex="0" role="region" aria-label="Agents seen"><table class="plain">
    <thead><tr><th scope="col">Agent</th><th scope="col" class="wide">Client</th><th scope="col" class="wide">Token</th><th scope="col">Last call</th></tr></thead>
    <tbody>${agents.slice(0, SEEN_MAX).map((agent) => html`<tr key=${`${agent.name} ${agent.client} ${agent.token}`}>
      <td class="name"><a href=${link('activity', { agent: agent.name })}><${Shown} text=${agent.name} max=${80} /></a></td>
      <td class="wide"><${Shown} text=${agent.client} max=${60} /></td><td class="wide"><${Shown} text=${agent.token} max=${60} /></td>
      <td><${Ago} time=${agent.last_call} /></td></tr>`)}</tbody></table></div>
    ${agents.length > SEEN_MAX && html`<p class="faint">The newest ${SEEN_MAX} of ${agents.length}.</p>`}</section>`;
}
