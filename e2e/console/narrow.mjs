// Each screen in narrow windows, and dialogs: nothing is cut off, and no serious fault of accessibility. EBB_SHOTS is a folder for pictures of them.
import assert from 'node:assert/strict'
import { accessibility, check, done, end, faults, page } from './browser.mjs'
import { screens } from './places.mjs'

for (const width of [900, 400]) {
  await check(`nothing goes beyond a window of ${width} pixels, and all of it can be reached`, async () => {
    for (const [name, place] of Object.entries(screens)) {
      const p = await page(place, { viewport: { width, height: 800 } })
      await p.getByRole('heading', { level: 1 }).waitFor({ state: 'attached' })
      await p.waitForTimeout(900)
      assert.ok(await p.evaluate(() => document.documentElement.scrollWidth <= innerWidth), name)
      if (process.env.EBB_SHOTS) await p.screenshot({ path: `${process.env.EBB_SHOTS}/${name}-${width}.png` })
      assert.deepEqual(await accessibility(p), [], name)
      await p.context().close()
    }
  })
}

await check('dialogs have no serious fault of accessibility', async () => {
  for (const [place, button] of [['#/settings/users', 'Add a user'], ['#/settings/roles', 'Make a role'], ['#/settings/parameters?q=ttlMonitorSleepSecs', 'Change ttlMonitorSleepSecs'], ['#/c/shop/sessions/documents', 'Insert'],
    ['#/c/shop/sessions/documents', 'Export'], ['#/c/shop/sessions/documents', 'Find a collection /'], ['#/c/shop/sessions/why?id=%22s4%22', 'Keep it for…'], ['#/c/shop/sessions/why?id=%22s4%22', 'Delete now'], ['#/operations/slow', /^Plan/]]) {
    const p = await page(place)
    await p.getByRole('button', { name: button }).first().click()
    await p.getByRole('dialog').waitFor()
    await p.waitForTimeout(500)
    assert.deepEqual(await accessibility(p), [], `${place} ${button}`)
    await p.context().close()
  }
})

await check('pages ask nobody else, run nothing foreign, and do not fail', () => assert.deepEqual(faults, []))

await end()
done()
