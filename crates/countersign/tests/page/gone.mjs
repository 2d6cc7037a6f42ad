// The gate ends and starts again. The page says so, tells how to sign in, and goes on where one was as
// soon as another tab of the browser is signed in.
import { addressed, goTo, outside, same, scenario, signIn, watch } from './browser.mjs';

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
  const other = await context.newPage();
  watch(other, faults);
  await signIn(other);
  await page.locator('.stream.live').waitFor();
  await page.getByText('No matching records').waitFor();
  await addressed(page, 'status=blocked');
  // Browsers log failed requests and 401s, which this scenario causes on purpose.
  same(faults.splice(0).filter((fault) => !/ERR_|401/.test(fault)), [], 'other complaints');
});
