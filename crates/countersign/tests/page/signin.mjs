// Signing in: a link works once; a tab without its token is nobody, but a tab that is signed in lets
// another one in; signing out ends it for all. Beside a service worker nobody signs in.
import { check, freshLink, same, scenario, scene, signIn } from './browser.mjs';

await scenario(async ({ page, context, faults }) => {
  const link = await freshLink();
  await page.goto(scene.origin);
  await page.getByText('countersign page').waitFor();

  await page.goto(link);
  await page.getByRole('heading', { name: 'Overview' }).waitFor();
  check(!page.url().includes('code='), 'the code is gone from the address');
  const cookies = await context.cookies();
  same(cookies.map(({ httpOnly, sameSite, path }) => ({ httpOnly, sameSite, path })), [{ httpOnly: true, sameSite: 'Strict', path: '/api/v1' }]);
  check(cookies[0].name.endsWith(new URL(link).port), `the port is in the name: ${cookies[0].name}`);
  same(await page.evaluate(() => document.cookie), '', 'no script sees the cookie');

  await page.reload();
  await page.getByRole('heading', { name: 'Overview' }).waitFor();

  // The browser sends the cookie from another tab too; without a token of its own it opens nothing. It
  // gets one through the tab that is signed in, not that tab's, and not after the sign-out below.
  const other = await context.newPage();
  await other.goto(scene.origin);
  await other.getByRole('heading', { name: 'Overview' }).waitFor();
  const tokens = await Promise.all([page, other].map((tab) => tab.evaluate(() => sessionStorage.getItem('countersign.session'))));
  check(tokens[0] !== tokens[1] && tokens.every((token) => token.startsWith('css_')), 'each tab has a token of its own');
  const status = await other.evaluate(async () => (await fetch('/api/v1/status')).status);
  same(status, 401, 'the cookie alone');
  // Once more with the same link, which was used.
  const third = await context.newPage();
  await third.goto(link);
  await third.getByText('was already used').waitFor();
  // A second tab of one browser, with a link of its own, leaves the first one signed in.
  await signIn(other);
  await page.reload();
  await page.getByRole('heading', { name: 'Overview' }).waitFor();

  await page.getByRole('button', { name: 'Sign out' }).click();
  await page.getByText('Sign in with a link').waitFor();
  await other.reload();
  await other.getByText('Sign in with a link').waitFor();
  // The page admits no worker; one that is there all the same is not let in on a sign-in.
  const admitted = await page.evaluate(() => navigator.serviceWorker.register('/page/app.mjs').then(() => 'admitted', () => 'refused'));
  same(admitted, 'refused', 'a worker of the page');
  for (const [answer, words] of [
    ['[{}]', 'a service worker controls this address'],
    ['Promise.reject(new Error())', 'this browser does not say'],
  ]) {
    const shadow = { content: `navigator.serviceWorker.getRegistrations = async () => ${answer}` };
    const shadowed = await context.newPage();
    await shadowed.addInitScript(shadow);
    await shadowed.goto(await freshLink());
    await shadowed.getByText(words).waitFor();
    // Nor does a tab stay signed in with it.
    const entered = await context.newPage();
    await signIn(entered);
    await entered.addInitScript(shadow);
    await entered.reload();
    await entered.getByText(words).waitFor();
    same(await entered.evaluate(() => sessionStorage.getItem('countersign.session')), null, 'the token is gone');
  }

  // Browsers note each 401 on the console; those were asked for.
  const expected = faults.splice(0).filter((fault) => !/401|ServiceWorker|worker-src/.test(fault));
  same(expected, [], 'other complaints');
});
