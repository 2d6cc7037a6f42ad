// Tokens of agents: made with a scope, shown once, revoked.
import { useState } from '../vendor/hooks.mjs';
import { path, post, remove } from '../api.mjs';
import { Ago, Empty, Fault, html, Shown, State, useAction, useAnswer, useTitle } from '../part/shown.mjs';
import { Decision } from '../part/dialog.mjs';
import { plural } from '../format.mjs';
import { link } from '../place.mjs';

const OPERATIONS = ['read', 'write', 'destructive'];
const SURFACES = [['discovery', 'discovery (search, then call)'], ['passthrough', 'pass-through (every tool by name)']];
const LIVES = [['', 'until revoked'], ['1h', '1 hour'], ['12h', '12 hours'], ['7d', '7 days'], ['30d', '30 days'], ['90d', '90 days']];

export function Tokens() {
  useTitle('Tokens');
  const { answer, error, look } = useAnswer('/tokens', ['activity']);
  const [made, setMade] = useState(null);
  const tokens = [...(answer?.tokens ?? [])].reverse();
  return html`
    <div class="head"><h1>Tokens</h1></div>
    <p class="lead">Agents authenticate with a token. Its scope says what it may use; it never opens this page. The default token, <code>agent-token</code> in the gate's home, is not listed.</p>
    <${Fault} error=${error} />
    ${made && html`<${Made} token=${made} onClose=${() => setMade(null)} />`}
    <${Make} onMade=${(token) => { setMade(token); look(); }} />
    ${answer && tokens.length === 0 && html`<${Empty} title="No tokens yet" command="countersign token create ci --operations read">
      <p>Create one above, or on the command line:</p><//>`}
    ${tokens.length > 0 && html`<p class="counted">${plural(tokens.length, 'token')}</p><div class="table-box" tabindex="0" role="region" aria-label="Tokens"><table class="plain decided">
      <thead><tr><th scope="col">Name</th><th scope="col">State</th><th scope="col">Operations</th><th scope="col" class="wide">Servers</th><th scope="col" class="wide">Surfaces</th>
        <th scope="col" class="wide">Created</th><th scope="col" class="wide">Expires</th><th scope="col">Revoke</th></tr></thead>
      <tbody>${tokens.map((token) => html`<tr key=${`${token.name} ${token.created_at}`}>
        <td class="name"><a href=${link('activity', { agent: token.name })}><${Shown} text=${token.name} /></a></td>
        <td><${State} word=${token.state} /></td>
        <td>${token.operations.join(', ')}</td>
        <td class="wide"><${Shown} text=${token.servers.join(', ')} max=${80} />${token.profile && html` <span class="faint">profile ${token.profile}</span>`}</td>
        <td class="wide">${(token.surfaces ?? []).join(', ')}</td>
        <td class="wide"><${Ago} time=${token.created_at} /></td>
        <td class="wide">${token.expires_at ? html`<${Ago} time=${token.expires_at} />` : html`<span class="faint">never</span>`}</td>
        <td><div class="buttons">${token.state === 'valid' && html`<${Decision} label="Revoke" tone="bad" work=${async () => { await remove('/tokens' + path(token.name)); look(); }}
          question=${`Revoke '${token.name}'? Its open sessions end within a second.`} />`}</div></td>
      </tr>`)}</tbody></table></div>`}`;
}

// The secret, this once.
function Made({ token, onClose }) {
  const [isCopied, setCopied] = useState(false);
  const copy = async () => { await navigator.clipboard.writeText(token.token); setCopied(true); };
  return html`<section class="notice good made" role="status" aria-label="The new token">
    <p><strong>Token '${token.name}' is created.</strong> Copy it now: it is not shown again, and the gate keeps only its hash.</p>
    <pre tabindex="0"><code>${token.token}</code></pre>
    <p>An MCP client sends it as <code>Authorization: Bearer …</code> to <code>${location.origin}/mcp</code>.</p>
    <div class="buttons"><button class="primary" onClick=${copy}>${isCopied ? 'Copied' : 'Copy'}</button><button onClick=${onClose}>I have saved it</button></div>
  </section>`;
}

function Make({ onMade }) {
  const { answer } = useAnswer('/servers', ['server']);
  const { isBusy, error, act } = useAction();
  const submit = (event) => {
    event.preventDefault();
    const form = new FormData(event.target);
    const given = (name) => form.get(name) || undefined;
    const servers = form.getAll('servers');
    const body = {
      name: form.get('name'), operations: form.getAll('operations'), surfaces: form.getAll('surfaces'),
      servers: servers.length ? servers : ['*'], profile: given('profile'), expires_in: given('expires_in'),
      unannotated_tools: given('unannotated_tools'),
    };
    const target = event.target;
    act(async () => { onMade(await post('/tokens', body)); target.reset(); });
  };
  return html`<details class="card make"><summary>Create a token</summary><form onSubmit=${submit}>
    <label class="field"><span>Name</span><input name="name" required maxlength="64" autocomplete="off" placeholder="ci" /></label>
    <fieldset><legend>Operations</legend>${OPERATIONS.map((operation) => html`<label><input type="checkbox" name="operations" value=${operation} defaultChecked=${operation === 'read'} /> ${operation}</label>`)}</fieldset>
    <fieldset><legend>Servers <span class="faint">(none selected: all)</span></legend>${(answer?.servers ?? []).map((server) => html`<label><input type="checkbox" name="servers" value=${server.name} /> <${Shown} text=${server.name} /></label>`)}</fieldset>
    <fieldset><legend>Surfaces</legend>${SURFACES.map(([surface, shown]) => html`<label><input type="checkbox" name="surfaces" value=${surface} defaultChecked=${surface === 'discovery'} /> ${shown}</label>`)}</fieldset>
    <label class="field"><span>Valid for</span><select name="expires_in">${LIVES.map(([value, shown]) => html`<option value=${value}>${shown}</option>`)}</select></label>
    <label class="field"><span>Tools without hints</span><select name="unannotated_tools"><option value="">default</option><option value="allow">allow</option><option value="deny">deny</option></select></label>
    <label class="field"><span>Profile <span class="faint">(in your config)</span></span><input name="profile" autocomplete="off" /></label>
    <${Fault} error=${error} />
    <div class="buttons"><button class="primary" disabled=${isBusy}>Create token</button></div>
  </form></details>`;
}
