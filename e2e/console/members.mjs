// A member of a replica set tells who leads.
import assert from 'node:assert/strict'
import { accessibility, check, done, end, faults, page } from './browser.mjs'

await check('the members are told of', async () => {
  const p = await page('#/operations')
  await p.getByRole('link', { name: 'Members' }).click()
  await p.getByRole('heading', { name: /leads, alone\./ }).waitFor()
  await p.getByText('Set rs in term').waitFor()
  await p.getByRole('row', { name: /this one primary/ }).waitFor()
  assert.deepEqual(await accessibility(p), [])
  await p.context().close()
})

await check('no page failed', () => assert.deepEqual(faults, []))

await end()
done()
