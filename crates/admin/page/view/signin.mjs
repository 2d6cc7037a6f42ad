// What somebody sees who has not signed in.
import { hasEnded, hasMoved } from '../api.mjs';
import { Empty, Fault, html, useTitle } from '../part/shown.mjs';

export function SignIn({ error }) {
  useTitle('Sign in');
  return html`<main class="signin">
    <h1><img src="/page/icon.svg" alt="" width="28" height="28" />Countersign</h1>
    ${hasEnded.value && html`<p class="notice warn" role="status"><strong>Your session has ended.</strong> ${hasMoved.value
      ? 'The gate was restarted, and its page has a new address. This tab can be closed.'
      : 'The gate was restarted, or twelve hours have passed. This tab goes on where it was once this browser is signed in.'}</p>`}
    <${Fault} error=${error} />
    <${Empty} title="Sign in with a link" command="countersign page">
      <p>Run this on the machine where the gate runs, and open the link that it prints. The link
      works once and expires after ten minutes. A session lasts 12 hours and ends when the gate
      restarts; until then, further tabs of this browser are signed in through this one.</p>
    <//>
  </main>`;
}
