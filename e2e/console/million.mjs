// A million documents are browsed: each stretch is there soon after it is asked for, the page stays quick, and holds no more rows than are seen.
import assert from 'node:assert/strict'
import { check, client, done, end, faults, page } from './browser.mjs'

const big = client.db('big').collection('readings')
const n = 1_000_000, step = 20_000
for (let i = 0; i < n; i += step) await big.insertMany(Array.from({ length: step }, (_, k) => ({ _id: i + k, device: `d${(i + k) % 1000}`, value: (i + k) / 7 })), { ordered: false })

await check('a million documents are counted and browsed', async () => {
  const p = await page('#/c/big/readings/documents')
  await p.getByText('1,000,000 documents').waitFor()
  const box = p.getByRole('region', { name: 'Documents' })
  for (let i = 0; i < 25; i++) {
    const before = await box.evaluate(e => {
      const height = e.scrollHeight
      e.scrollTop = height
      return height
    })
    await p.waitForFunction(before => document.querySelector('.docs-box').scrollHeight > before, before)
    assert.ok(await p.locator('tbody tr').count() < 120, 'rows that nobody sees are there')
  }
  assert.ok(await box.evaluate(e => e.scrollHeight) > 10_000 * 38)
  // Frames go on while it is scrolled through what is loaded.
  const longest = await box.evaluate(async e => {
    let last = performance.now(), worst = 0
    for (let i = 0; i < 120; i++) {
      e.scrollTop = i / 120 * e.scrollHeight
      await new Promise(requestAnimationFrame)
      worst = Math.max(worst, performance.now() - last)
      last = performance.now()
    }
    return worst
  })
  console.log(`# the longest frame took ${Math.round(longest)} ms`)
  await p.context().close()
})

await check('the last of them is found by its _id', async () => {
  const p = await page('#/c/big/readings/documents?q=' + encodeURIComponent('{ _id: 999999 }'))
  await p.locator('tbody tr', { hasText: '999999' }).waitFor()
  await p.context().close()
})

await check('no page failed', () => assert.deepEqual(faults, []))

await end()
done()
