// A run that goes on while one looks: its agent's words as they come, a bar that grows, then the next
// step, and what the command that failed wrote to stderr. Nothing is reloaded.
import { check, goTo, outside, scenario, signIn } from './browser.mjs';

await scenario(async ({ page }) => {
  await signIn(page);
  await goTo(page, '#/runs');
  await page.getByText('No workflow runs yet').waitFor();
  await page.evaluate(() => { window.isTheSamePage = true; });
  await outside('run');
  await page.locator('tr[data-id]').filter({ hasText: 'running' }).click();

  const step = page.locator('.step').first();
  await step.locator('.fall-text .fall-name').getByText('I look at it').waitFor();
  // The agent has said that and waits: its step goes on, and so does the clock.
  await step.locator('.span.running').waitFor();
  const clock = page.locator('.figures .figure').first();
  const before = await clock.innerText();
  await page.waitForFunction((last) => document.querySelector('.figures .figure').innerText !== last, before);
  const part = (name) => page.locator(`.step .span.${name}`).first().evaluate((span) => span.offsetLeft / span.parentElement.offsetWidth);
  const said = await part('text');
  await page.waitForFunction((last) => {
    const span = document.querySelector('.step .span.text');
    return span.offsetLeft / span.parentElement.offsetWidth < last;
  }, said);

  await outside('go');
  await step.locator('.fall-text .fall-name').getByText('All is well.').waitFor();
  await page.getByRole('region', { name: 'Why it failed' }).getByText('out of cheese').waitFor();
  const last = page.locator('.step').nth(1);
  await last.getByRole('region', { name: 'Stderr' }).getByText('out of cheese').waitFor();
  await last.getByText('exit code 7').first().waitFor();
  await page.locator('.verdict').getByText('failed').first().waitFor();
  for (const spent of ['40', '$0.25']) await page.locator('.figures').getByText(spent, { exact: true }).waitFor();
  check(await page.evaluate(() => window.isTheSamePage), 'nothing was reloaded');
});
