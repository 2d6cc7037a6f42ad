// A page on another port of this machine, in a browser that is signed in: it reads and changes
// nothing, though the browser counts it as the same site and sends the cookie along.
import { check, outside, same, scenario, scene, signIn } from './browser.mjs';

await scenario(async ({ page, context, faults }) => {
  await signIn(page);
  const stranger = await context.newPage();
  await stranger.goto(scene.stranger);
  const tried = await stranger.evaluate(async (gate) => {
    const attempt = async (path, options) => {
      try {
        const answer = await fetch(gate + path, { credentials: 'include', ...options });
        return answer.type === 'opaque' ? 'opaque' : `read ${answer.status}`;
      } catch {
        return 'nothing';
      }
    };
    const json = { 'content-type': 'application/json' };
    return {
      read: await attempt('/api/v1/status'),
      readBlindly: await attempt('/api/v1/status', { mode: 'no-cors' }),
      events: await attempt('/api/v1/events'),
      script: await new Promise((resolve) => {
        const script = document.createElement('script');
        script.src = gate + '/page/app.mjs';
        script.onload = () => resolve('loaded');
        script.onerror = () => resolve('nothing');
        document.head.append(script);
      }),
      frame: await new Promise((resolve) => {
        const frame = document.createElement('iframe');
        frame.src = gate + '/';
        frame.onload = () => {
          try { resolve(frame.contentDocument ? frame.contentDocument.body.innerText : 'nothing'); } catch { resolve('nothing'); }
        };
        document.body.append(frame);
      }),
      revoke: await attempt('/api/v1/tokens/kept', { method: 'DELETE' }),
      quarantine: await attempt('/api/v1/servers/s/quarantine', { method: 'POST', headers: json, body: '{}' }),
      quarantineBlindly: await attempt('/api/v1/servers/s/quarantine', { method: 'POST', mode: 'no-cors', body: '{}' }),
      withHeader: await attempt('/api/v1/status', { headers: { 'x-countersign-session': 'guessed' } }),
      form: await new Promise((resolve) => {
        const target = document.createElement('iframe');
        target.name = 'target';
        document.body.append(target);
        const form = document.createElement('form');
        Object.assign(form, { method: 'post', action: gate + '/api/v1/servers/s/quarantine', target: 'target' });
        document.body.append(form);
        target.onload = () => resolve('sent');
        form.submit();
        setTimeout(() => resolve('sent'), 3_000);
      }),
    };
  }, scene.origin);
  for (const [what, came] of Object.entries(tried)) {
    check(['nothing', 'opaque', 'sent', ''].includes(came), `${what}: ${came}`);
  }
  const { state, token } = await outside('look');
  same([state, token], ['ready', 'valid'], 'nothing has changed');
  // Whatever it was answered, the page that is signed in goes on.
  await page.reload();
  await page.getByRole('heading', { name: 'Overview' }).waitFor();
  faults.length = 0;
});
