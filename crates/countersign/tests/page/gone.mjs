// The gate ends and starts again. The page says so, and that it has another address now.
import { check, goTo, outside, same, scenario, scene, signIn, watch } from './browser.mjs';

await scenario(async ({ page, context, faults }) => {
  await signIn(page);
  await goTo(page, '#/activity?status=blocked');
  await page.getByText('No matching records').waitFor();
  await page.locator('.stream.live').waitFor();

  await outside('end');
  await page.getByRole('alert').getByText('The gate does not respond').waitFor();
  await page.locator('.stream.lost').waitFor();
  await page.getByText('No matching records').waitFor();

  await outside('start');
  await page.getByText('Your session has ended').waitFor();
  await page.getByText('its page has a new address').waitFor();
  const before = scene.origin;
  const other = await context.newPage();
  watch(other, faults);
  await signIn(other);
  check(scene.origin !== before, `the address is new: ${scene.origin}`);
  await other.locator('.stream.live').waitFor();
  // The tab of the start before is not let in by it.
  await page.reload();
  await page.getByText('is not allowed here').waitFor();
  // Browsers log failed requests and 403s, which this scenario causes on purpose.
  const expected = (fault) => /ERR_|403/.test(fault) || fault === `another host: ${before}/`;
  same(faults.splice(0).filter((fault) => !expected(fault)), [], 'other complaints');
});
