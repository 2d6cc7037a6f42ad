// Adding a server: paste what its README says, see what it would be, add it. It starts in quarantine.
import { useState } from '../vendor/hooks.mjs';
import { post } from '../api.mjs';
import { change, go, place } from '../place.mjs';
import { Fault, html, Shown, useAction } from '../part/shown.mjs';
import { pasted } from '../part/pasted.mjs';

export function Add({ look }) {
  const isOpen = place.value.values.add === 'yes';
  const [text, setText] = useState('');
  const { servers = [], error } = pasted(text);
  return html`<details class="card make" open=${isOpen} onToggle=${(event) => event.target.open !== isOpen && change({ add: event.target.open ? 'yes' : '' }, { small: true })}>
    <summary>Add a server</summary>
    <label class="field"><span>Paste a JSON block, a command or an address</span>
      <textarea rows="4" spellcheck="false" autocomplete="off" placeholder="npx -y @modelcontextprotocol/server-filesystem ~/notes" onInput=${(event) => setText(event.target.value)}></textarea></label>
    ${error && html`<p class="warn-text">${error}</p>`}
    ${servers.map((server, at) => html`<${Found} key=${`${at} ${server.name}`} server=${server} isOnly=${servers.length === 1} look=${look} />`)}
    <p class="faint">Adding starts nothing: the server waits in quarantine until you have inspected and approved it. Values that may be secret are kept apart and never shown.</p>
  </details>`;
}

function Found({ server, isOnly, look }) {
  const { name: given, ...entry } = server;
  const [name, setName] = useState(given);
  const [isAdded, setAdded] = useState(false);
  const { isBusy, error, act } = useAction();
  const add = () => act(async () => {
    await post('/servers', { ...entry, name });
    setAdded(true);
    look();
    if (isOnly) go('servers', { server: name });
  });
  const what = entry.command ? [entry.command, ...(entry.args ?? [])].join(' ') : entry.url;
  return html`<div class="found">
    <label class="field"><span>Name</span><input value=${name} maxlength="64" onInput=${(event) => setName(event.target.value)} /></label>
    <code><${Shown} text=${what} max=${400} /></code>
    ${entry.env && html`<span class="faint">with <${Shown} text=${Object.keys(entry.env).join(', ')} max=${200} /></span>`}
    <button class="primary" disabled=${isBusy || isAdded || !name} onClick=${add}>${isAdded ? 'Added' : 'Add to quarantine'}</button>
    <${Fault} error=${error} /></div>`;
}
