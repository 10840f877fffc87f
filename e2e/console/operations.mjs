// What the server does and did: slow queries by shape with their plans, what is counted of all, operations that are ended, the log, members, storage.
import assert from 'node:assert/strict'
import { accessibility, check, client, done, end, eventually, faults, page, url } from './browser.mjs'

const admin = client.db('admin'), shop = client.db('shop')
const orders = shop.collection('orders')
await orders.insertMany(Array.from({ length: 4000 }, (_, i) => ({ _id: i, user: `u${i % 50}`, total: i })))
await orders.createIndex({ user: 1 }, { name: 'user_1' })

await check('what was slow is grouped by shape, with its plan and an index that would serve it', async () => {
  await shop.command({ profile: 0, slowms: 0 })
  for (const n of [10, 20, 30]) await orders.find({ total: { $gt: n }, gone: false }).sort({ total: 1 }).toArray()
  await shop.command({ profile: 0, slowms: 100 })
  const p = await page('#/operations/slow')
  const row = p.getByRole('row', { name: /find \{ total: \{ \$gt: \? \}, gone: \? \} sort/ })
  await row.waitFor()
  assert.match(await row.innerText(), /COLLSCAN[\s\S]*\b3\b/)
  await p.getByRole('heading', { name: /reads whole collections/ }).waitFor()
  await row.getByRole('button', { name: /^Plan/ }).click()
  await p.getByRole('dialog').getByText('COLLSCAN', { exact: true }).waitFor()
  assert.deepEqual(await accessibility(p), [])
  await p.getByRole('button', { name: 'Close' }).click()
  await row.getByRole('link', { name: 'Index…' }).click()
  await p.getByRole('textbox', { name: 'key of the index' }).getByText('{ gone: 1, total: 1 }').waitFor()
  await p.context().close()
})

await check('what was profiled is among the slow', async () => {
  await shop.command({ profile: 2, slowms: 10_000 })
  await orders.find({ user: 'u7', total: { $lt: 100 } }).toArray()
  await shop.command({ profile: 0, slowms: 100 })
  const p = await page('#/operations/slow')
  await p.getByRole('row', { name: /find \{ user: \?, total: \{ \$lt: \? \} \}/ }).getByText('IXSCAN user: 1').waitFor()
  await p.getByText(/operations that were profiled/).waitFor()
  await p.context().close()
})

await check('queries of all shapes are counted when it is asked for', async () => {
  const p = await page('#/operations/slow?of=all')
  await p.getByText('Queries are counted by their shapes when it is asked for').waitFor()
  await p.getByText('all', { exact: true }).click()
  await eventually(10_000, 'they are counted', async () => (await admin.command({ getParameter: 1, internalQueryStatsRateLimit: 1 })).internalQueryStatsRateLimit === -1)
  for (let i = 0; i < 5; i++) await orders.find({ user: `u${i}` }).toArray()
  await orders.aggregate([{ $match: { total: { $gte: 3990 } } }, { $group: { _id: '$user', n: { $sum: 1 } } }]).toArray()
  await p.reload()
  const row = p.getByRole('row', { name: /find \{ user: \? \}/ })
  await row.waitFor()
  assert.match(await row.innerText(), /\b5\b/)
  await row.getByRole('button', { name: /^Plan/ }).click()
  await p.getByText('As one with other values would be run now').waitFor()
  await p.getByRole('dialog').getByText('IXSCAN', { exact: true }).waitFor()
  await p.getByRole('dialog').getByText('"execCount": 5').waitFor()
  await p.getByRole('button', { name: 'Close' }).click()
  await p.getByRole('row', { name: /aggregate \[ \$match \{ total: \{ \$gte: \? \} \}, \$group \]/ }).waitFor()
  await p.context().close()
  await admin.command({ setParameter: 1, internalQueryStatsRateLimit: 0 })
})

await check('an operation is ended', async () => {
  const long = orders.aggregate([{ $match: { $expr: { $function: { body: 'function() { for (;;); }', args: [], lang: 'js' } } } }]).toArray().then(() => 'it ended', e => e.codeName)
  const p = await page('#/operations/running')
  const row = p.getByRole('row', { name: /shop\.orders/ }).first()
  await row.getByRole('button', { name: /^End operation/ }).click()
  await p.getByRole('button', { name: 'End it' }).click()
  assert.equal(await long, 'Interrupted')
  await p.context().close()
})

await check('the log is read and narrowed', async () => {
  const p = await page('#/operations/log')
  await p.getByText('The console is open').waitFor()
  await p.getByRole('searchbox', { name: 'Search the log' }).fill('Slow query')
  await p.getByText('The console is open').waitFor({ state: 'detached' })
  await p.getByText('Slow query').first().waitFor()
  await p.context().close()
})

await check('the sizes of a collection and of its indexes are told', async () => {
  const p = await page('#/storage')
  await p.getByRole('button', { name: /Indexes of shop\.orders/ }).click()
  await p.getByRole('row', { name: /index user_1/ }).waitFor()
  await p.context().close()
})

await check('a server on its own has no members', async () => {
  const p = await page('#/operations/members')
  await p.getByRole('heading', { name: 'This server is on its own.' }).waitFor()
  await p.goto(url + '#/operations')
  assert.equal(await p.getByRole('link', { name: 'Members' }).count(), 0)
  await p.context().close()
})

await check('pages ask nobody else, run nothing foreign, and do not fail', () => assert.deepEqual(faults, []))

await end()
done()
