// Reviewing one by one: what waits for approval, of one server or of all; `a` approves what is shown,
// `s` skips it. An approval names the version that was shown, so that no other is approved.
import { useEffect, useRef, useState } from '../vendor/hooks.mjs';
import { get, path, post } from '../api.mjs';
import { change } from '../place.mjs';
import { Empty, Fault, html, Loading, Shown, useAction } from '../part/shown.mjs';
import { Beside } from '../part/dialog.mjs';
import { isTyping } from '../part/list.mjs';
import { Item } from './tool.mjs';

async function waiting(servers) {
  const lists = await Promise.all(servers.map(async ({ name }) => {
    const { items } = await get('/servers' + path(name, 'items') + '?pending=true');
    return items.map((item) => ({ server: name, item }));
  }));
  return lists.flat();
}

// The servers with items to review. One in quarantine is approved as a whole, on its own page.
const asked = (servers, only) => servers.filter(({ name, pending, quarantined }) => pending > 0 && !quarantined && (!only || name === only));

export function Reviews({ servers, only, look }) {
  const [queue, setQueue] = useState(null);
  const [at, setAt] = useState(0);
  const [approved, setApproved] = useState(0);
  const [error, setError] = useState(null);
  const action = useAction();
  useEffect(() => { waiting(asked(servers, only)).then(setQueue, setError); }, []);
  const close = () => { change({ review: '' }); look(); };
  const current = queue?.[at];
  const skip = () => setAt(at + 1);
  const approve = async () => {
    const { kind, name, fingerprint } = current.item;
    const isDone = await action.act(() => post('/servers' + path(current.server, 'approve-items'), { items: [{ kind, name, fingerprint }] }));
    if (isDone) { setApproved(approved + 1); setAt(at + 1); look(); }
  };
  useReviewKeys({ a: current && !action.isBusy ? approve : null, s: current ? skip : null });
  const title = current ? html`<${Shown} text=${`${current.server}:${current.item.name || current.item.kind}`} max=${200} />` : 'Review';
  return html`<${Beside} title=${title} onClose=${close}>
    <${Fault} error=${error ?? action.error} />
    ${!queue && !error && html`<${Loading} />`}
    ${queue && !current && html`<${Empty} title=${queue.length === 0 ? 'Nothing waits for review' : 'That was all'}>
      <p>${approved} approved, ${queue.length - approved} skipped.</p><p><button onClick=${close}>Close</button></p><//>`}
    ${current && html`<div class="review-bar"><span class="strong">${at + 1} of ${queue.length}</span>
        <button class="primary" disabled=${action.isBusy} onClick=${approve}>Approve <kbd>a</kbd></button>
        <button onClick=${skip}>Skip <kbd>s</kbd></button></div>
      <${Item} key=${`${current.server} ${current.item.kind} ${current.item.name}`} item=${current.item} />`}
  <//>`;
}

// A key that is held down decides about one thing only.
function useReviewKeys(keys) {
  const newest = useRef(keys);
  newest.current = keys;
  useEffect(() => {
    const pressed = (event) => {
      if (isTyping(event) || event.repeat || event.ctrlKey || event.metaKey || event.altKey) return;
      const act = newest.current[event.key];
      if (!act) return;
      event.preventDefault();
      act();
    };
    document.addEventListener('keydown', pressed);
    return () => document.removeEventListener('keydown', pressed);
  }, []);
}
