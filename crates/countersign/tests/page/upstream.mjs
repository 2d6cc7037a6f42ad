// Signing in to servers that want OAuth: by the command line's address, by the page's button, and for one
// agent token.
import { goTo, outside, scenario, signIn } from './browser.mjs';

await scenario(async ({ page, context }) => {
  const { address } = await outside('begin');
  const tab = await context.newPage();
  await tab.goto(address);
  await agree(tab);
  await outside('end');

  await signIn(page);
  await page.getByRole('link', { name: 'Servers' }).first().click();
  await page.getByText('needs a sign-in').first().waitFor();
  const [opened] = await Promise.all([
    context.waitForEvent('page'),
    page.getByRole('button', { name: 'Sign in' }).first().click(),
  ]);
  await agree(opened);
  await page.getByText('ready').first().waitFor();

  await goTo(page, '#/servers?server=t');
  const [again] = await Promise.all([
    context.waitForEvent('page'),
    page.getByRole('button', { name: 'Sign in for agent-token' }).click(),
  ]);
  await agree(again);
  await page.getByText('agent-token signed in').waitFor();
});

// Answers the questions of the authorization server until it has none.
async function agree(tab) {
  const done = tab.getByRole('heading', { name: 'Signed in' });
  const login = tab.locator('input[name=login]');
  const consent = tab.getByRole('button', { name: 'Continue' });
  for (;;) {
    await done.or(login).or(consent).first().waitFor();
    if (await done.isVisible()) return;
    if (await login.isVisible()) {
      await login.fill('person');
      await tab.locator('input[name=password]').fill('any');
      await tab.getByRole('button').first().click();
      await login.waitFor({ state: 'detached' });
    } else {
      await consent.click();
      await consent.waitFor({ state: 'detached' });
    }
  }
}
