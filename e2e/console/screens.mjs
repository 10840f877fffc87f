// Each screen in both themes: no serious fault of accessibility, no fault at all of the page. EBB_SHOTS is a folder for pictures of them.
import assert from 'node:assert/strict'
import { accessibility, check, done, end, faults, page } from './browser.mjs'
import { screens } from './places.mjs'

for (const colorScheme of ['light', 'dark']) {
  for (const [name, place] of Object.entries(screens)) {
    await check(`${name} in ${colorScheme}`, async () => {
      const p = await page(place, { colorScheme })
      await p.waitForTimeout(1800)
      await p.getByRole('heading', { level: 1 }).waitFor({ state: 'attached' })
      assert.equal(await p.getByText(/cannot be read/).count(), 0)
      if (process.env.EBB_SHOTS) await p.screenshot({ path: `${process.env.EBB_SHOTS}/${name}-${colorScheme}.png` })
      assert.deepEqual(await accessibility(p), [])
      await p.context().close()
    })
  }
}

await check('pages ask nobody else, run nothing foreign, and do not fail', () => assert.deepEqual(faults, []))

await end()
done()
