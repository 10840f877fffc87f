// A thousand collections, each with a rule: each list is one request, draws what is seen, and is found in.
import assert from 'node:assert/strict'
import { check, client, done, end, faults, page } from './browser.mjs'

const n = 1000
const db = client.db('many')
const name = i => `c${String(i).padStart(4, '0')}`
for (let i = 0; i < n; i += 20) {
  await Promise.all(Array.from({ length: 20 }, async (_, k) => {
    await db.command({ createIndexes: name(i + k), indexes: [{ key: { at: 1 }, name: 'at_1', expireAfterSeconds: 3600 }] })
    await db.collection(name(i + k)).insertOne({ at: new Date(Date.now() + (i + k) * 60_000) })
  }))
}

/** A page that counts its requests by their commands, and the time until something is seen. */
async function counted(place, until) {
  const began = Date.now(), commands = []
  const p = await page(place, { prepare: p => p.on('request', r => {
    if (r.url().endsWith('/api/command')) commands.push(r.postData().slice(0, 60))
  }) })
  await until(p)
  console.log(`# ${place}: ${Date.now() - began} ms, ${commands.length} commands, ${await p.evaluate(() => document.querySelectorAll('*').length)} elements`)
  return { p, commands }
}

await check('the tide draws what goes soonest, and finds the rest', async () => {
  const { p, commands } = await counted('#/', async p => {
    await p.getByRole('heading', { name: /Expiry is/ }).waitFor()
    await p.locator('.tide tbody tr', { hasText: 'many.c0000' }).locator('a.cell').first().waitFor()
    await p.locator('.side').getByText('c0000').waitFor()
  })
  await p.getByText('940 more rules').waitFor()
  assert.equal(await p.locator('.tide tbody tr').count(), 60)
  assert.ok(await p.locator('.side .trees a').count() < 100, 'the side draws what nobody sees')
  await p.getByRole('searchbox', { name: 'Show only collections called' }).fill('c0999')
  await p.locator('.tide tbody tr', { hasText: 'many.c0999' }).waitFor()
  assert.equal(await p.locator('.tide tbody tr').count(), 1)
  assert.ok(commands.length < 40, `${commands.length} commands for one screen`)
  await p.context().close()
})

await check('the side is scrolled through to its end', async () => {
  const p = await page('#/operations')
  await p.locator('.side').getByText('c0000').waitFor()
  await p.locator('.trees').evaluate(e => { e.scrollTop = e.scrollHeight })
  await p.locator('.side').getByText('c0999').waitFor()
  await p.getByRole('link', { name: /c0999 1/ }).waitFor() // its count
  await p.context().close()
})

await check('sizes of all are one request, and sorted', async () => {
  const { p, commands } = await counted('#/storage', p => p.getByRole('heading', { name: /1,00\d collections take/ }).waitFor())
  assert.ok(await p.locator('main tbody tr').count() <= 200)
  assert.ok(commands.filter(c => /collStats|AllCollectionStats/.test(c)).length <= 2)
  assert.ok(commands.length < 20, `${commands.length} commands for one screen`)
  await p.getByRole('searchbox', { name: 'Show only collections called' }).fill('c0500')
  await p.locator('main tbody tr', { hasText: 'many.c0500' }).waitFor()
  await p.context().close()
})

await check('one is found by its name', async () => {
  const p = await page('#/')
  await p.locator('.side').getByText('c0000').waitFor()
  await p.keyboard.press('/')
  await p.getByRole('combobox', { name: 'Parts of its name' }).fill('many 0777')
  await p.keyboard.press('Enter')
  await p.waitForURL('**/#/c/many/c0777/expiry')
  await p.getByRole('heading', { name: /an hour after at/ }).waitFor()
  await p.locator('.side a[aria-current=page]', { hasText: 'c0777' }).waitFor()
  await p.context().close()
})

await check('a page that nobody sees asks nothing', async () => {
  const p = await page('#/')
  await p.getByRole('heading', { name: /Expiry is/ }).waitFor()
  await p.evaluate(() => {
    Object.defineProperty(document, 'hidden', { value: true, configurable: true })
    document.dispatchEvent(new Event('visibilitychange'))
  })
  await p.waitForTimeout(1500) // what was under way ends
  let asked = 0
  p.on('request', () => { asked++ })
  await p.waitForTimeout(12_000)
  assert.ok(asked === 0, `${asked} requests`)
  await p.evaluate(() => {
    Object.defineProperty(document, 'hidden', { value: false, configurable: true })
    document.dispatchEvent(new Event('visibilitychange'))
  })
  await p.waitForRequest(/api\/command/)
  await p.context().close()
})

await check('no page failed', () => assert.deepEqual(faults, []))

await end()
done()
