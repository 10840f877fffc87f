// What people come for: is all well, switch expiry, look before a change, find out why a document stays, rescue.
import assert from 'node:assert/strict'
import { accessibility, check, client, done, end, eventually, faults, page, url } from './browser.mjs'

const shop = client.db('shop')
const sessions = shop.collection('sessions')
await sessions.insertMany(Array.from({ length: 3000 }, (_, i) => ({ _id: `s${i}`, user: i % 40, ...(i === 7 ? { ttl: -1 } : {}), at: i < 2000 ? new Date(Date.now() - 3600e3) : new Date(Date.now() + 86400e3) })))

await check('the tide says that nothing expires, and leads to a collection by /', async () => {
  const p = await page()
  await p.getByRole('heading', { name: 'Nothing expires here yet.' }).waitFor()
  await p.keyboard.press('/')
  await p.getByRole('combobox', { name: 'Parts of its name' }).fill('sess')
  await p.keyboard.press('Enter')
  await p.waitForURL('**/#/c/shop/sessions/expiry')
  await p.getByRole('heading', { name: /stay for ever/ }).waitFor()
  await p.keyboard.press('g')
  await p.keyboard.press('t')
  await p.waitForURL('**/#/')
  await p.context().close()
})

await check('expiry is switched on after the last change', async () => {
  const p = await page('#/c/shop/sessions/expiry')
  await p.getByRole('button', { name: 'Switch on' }).click()
  await p.getByText('On', { exact: true }).click()
  await p.getByLabel('time to live').fill('30 minutes')
  await p.getByText('No document would be past its deadline at once.').waitFor()
  await p.getByRole('button', { name: 'Switch on', exact: true }).last().click()
  await p.getByRole('heading', { name: 'Sessions go half an hour after the last change.' }).waitFor()
  const index = (await sessions.indexes()).find(i => i.name === '_ts_1')
  assert.equal(index.expireAfterSeconds, 1800)
  await p.context().close()
})

await check('a mass expiry is refused without its number, and done with it', async () => {
  const p = await page('#/c/shop/sessions/expiry?change=new')
  await p.getByLabel('by the date in').fill('at')
  await p.getByText('2,000 of 3,000 documents would be past their deadline at once.').waitFor()
  // Some of them are shown, with what is in them, and the calendar as it would be.
  await p.getByRole('columnheader', { name: '8 of them' }).waitFor()
  await p.getByRole('cell', { name: /user: 0/ }).first().waitFor()
  await p.getByLabel('The calendar before and after the change').waitFor()
  const button = p.getByRole('button', { name: 'Change, and let them go' })
  assert.equal(await button.isDisabled(), true)
  await p.getByLabel('Type 2000 to confirm').fill('200')
  assert.equal(await button.isDisabled(), true)
  assert.equal((await sessions.indexes()).length, 2)
  await p.getByLabel('Type 2000 to confirm').fill('2000')
  await button.click()
  await eventually(10_000, 'there is the index', async () => (await sessions.indexes()).some(i => i.name === 'at_1' && i.expireAfterSeconds === 0))
  // An index is listed while it is built, too, and its build ends with the page that asked for it.
  await eventually(10_000, 'the index is built', async () => (await shop.command({ ebbTTL: 'sessions' })).indexes.some(i => i.index === 'at_1'))
  await p.context().close()
})

await check('deleting is paused and goes on', async () => {
  const p = await page('#/c/shop/sessions/expiry')
  await p.getByRole('button', { name: 'Pause' }).click()
  await p.getByText('Nothing is deleted here.').waitFor()
  assert.equal((await shop.command({ ebbTTL: 'sessions' })).indexes[0].paused, true)
  await p.goto(url + '#/')
  await p.getByRole('heading', { name: /held up/ }).waitFor()
  // It is resumed where it is told of, and by the number of those that go with it.
  await p.getByRole('button', { name: 'Resume shop.sessions' }).click()
  const n = await p.getByRole('dialog').locator('label b').innerText()
  assert.equal((await shop.command({ ebbTTL: 'sessions' })).indexes[0].paused, true)
  await p.getByLabel(/Type \d+ to confirm/).fill(n)
  await p.getByRole('button', { name: 'Let them go' }).click()
  await eventually(10_000, 'deleting goes on', async () => !(await shop.command({ ebbTTL: 'sessions' })).indexes[0].paused)
  await p.goto(url + '#/c/shop/sessions/expiry')
  await p.getByRole('button', { name: 'Pause' }).waitFor()
  await p.context().close()
})

await check('who changed a rule is told', async () => {
  const p = await page('#/c/shop/sessions/expiry')
  const done = p.locator('section', { has: p.getByRole('heading', { name: 'What was done here' }) })
  await done.getByRole('row', { name: /at_1 made: 0 seconds/ }).getByText(/createIndexes · Ebb console/).waitFor()
  await done.getByRole('row', { name: /paused/ }).first().waitFor()
  await p.context().close()
})

await check('expiry that is held is released, by the number of those that go', async () => {
  const admin = client.db('admin')
  await shop.collection('codes').createIndex({ at: 1 }, { expireAfterSeconds: 0, name: 'at_1' })
  await admin.command({ setParameter: 1, ttlHold: new Date() })
  await shop.collection('codes').insertMany(Array.from({ length: 30 }, () => ({ at: new Date(Date.now() + 200) })))
  await eventually(10_000, 'they are due', async () => (await admin.command({ ebbTTL: 1 })).indexes.some(i => i.ns === 'shop.codes' && Number(i.backlog) === 30))
  const p = await page('#/')
  await p.getByRole('heading', { name: 'Expiry is held: nothing is deleted.' }).waitFor()
  await p.getByRole('button', { name: 'Release…' }).click()
  const field = p.getByLabel(/Type \d+ to confirm/)
  await field.fill(await p.getByRole('dialog').locator('label b').innerText())
  assert.equal(await shop.collection('codes').countDocuments(), 30)
  await p.getByRole('button', { name: 'Let them go' }).click()
  await p.getByRole('heading', { name: 'Expiry is held: nothing is deleted.' }).waitFor({ state: 'detached' })
  await eventually(70_000, 'they go', async () => await shop.collection('codes').countDocuments() === 0)
  await p.context().close()
})

await check('no serious fault of accessibility, in either theme', async () => {
  for (const colorScheme of ['light', 'dark']) {
    for (const place of ['#/', '#/c/shop/sessions/expiry?change=_ts_1']) {
      const p = await page(place, { colorScheme })
      await p.waitForTimeout(1500)
      assert.deepEqual(await accessibility(p), [], `${place} in ${colorScheme}`)
      await p.context().close()
    }
  }
})

await check('pages ask nobody else, run nothing foreign, and do not fail', () => assert.deepEqual(faults, []))

await end()
done()
