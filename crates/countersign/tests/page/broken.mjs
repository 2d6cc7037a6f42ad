// A ledger that was edited without its key: the page says that it is broken and why, and that it is
// intact once that is mended.
import { goTo, outside, scenario, scene, signIn } from './browser.mjs';

await scenario(async ({ page }) => {
  await signIn(page);
  await goTo(page, '#/receipts');
  const standing = page.getByRole('region', { name: 'Verdict on the ledger' });
  const outcome = page.locator('.outcome');
  const verify = () => page.getByRole('button', { name: 'Verify all chains' }).click();
  await standing.getByText('The ledger is intact.').waitFor();
  for (const [kind, reason] of scene.kinds) {
    await outside('tamper', { kind });
    await verify();
    await standing.getByText('The ledger is broken.').waitFor();
    await outcome.getByText(reason).first().waitFor();
    await outside('mend');
    await verify();
    await standing.getByText('The ledger is intact.').waitFor();
  }
});
