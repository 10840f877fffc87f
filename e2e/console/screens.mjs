// Each screen in both themes: no serious fault of accessibility, no fault at all of the page. EBB_SHOTS is a folder for pictures of them.
import assert from 'node:assert/strict'
import { accessibility, check, client, done, end, faults, page } from './browser.mjs'

const now = Date.now()
const shop = client.db('shop')
await shop.command({ createIndexes: 'sessions', indexes: [{ key: { _ts: 1 }, name: '_ts_1', expireAfterSeconds: 1800 }, { key: { endsAt: 1 }, name: 'endsAt_1', expireAfterSeconds: 0 }] })
await shop.collection('sessions').insertMany(Array.from({ length: 5000 }, (_, i) => ({ _id: `s${i}`, user: `u${i % 90}`, ...(i % 3 === 0 ? { ttl: 60 + i } : {}), ...(i % 50 === 1 ? { ttl: -1 } : {}), ...(i % 70 === 2 ? { endsAt: 'soon' } : {}) })))
await client.db('admin').command({ createUser: 'somebody', pwd: 'x', roles: ['read'] })
await client.db('admin').command({ profile: 0, slowms: 0 })
await shop.collection('sessions').find({ user: 'u5' }).sort({ _id: -1 }).toArray()

const screens = { tide: '#/', documents: '#/c/shop/sessions/documents', document: '#/c/shop/sessions/documents?doc=%22s4%22', aggregate: '#/c/shop/sessions/documents?mode=aggregate&pipe=' + encodeURIComponent('[{ $sortByCount: "$user" }]'),
  expiry: `#/c/shop/sessions/expiry?from=${now}&until=${now + 86400e3}`, change: '#/c/shop/sessions/expiry?change=_ts_1&ttl=1%20second', rule: '#/c/shop/sessions/expiry?change=new', why: '#/c/shop/sessions/why?id=%22s0%22', reasons: '#/c/shop/sessions/why',
  indexes: '#/c/shop/sessions/indexes?make=', running: '#/operations/running?own=1', slow: '#/operations/slow', connections: '#/operations/connections', log: '#/operations/log', storage: '#/storage', parameters: '#/settings/parameters', users: '#/settings/users', roles: '#/settings/roles', shapes: '#/operations/slow?of=all', indexesOfOne: '#/storage?open=shop.sessions' }

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
    ['#/c/shop/sessions/documents', 'Export'], ['#/c/shop/sessions/documents', 'Find a collection /'], ['#/c/shop/sessions/why?id=%22s0%22', 'Keep it for…'], ['#/c/shop/sessions/why?id=%22s0%22', 'Delete now'], ['#/operations/slow', /^Plan/]]) {
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
