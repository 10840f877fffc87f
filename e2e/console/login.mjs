// Who logs in to the console may do what the user may.
import assert from 'node:assert/strict'
import { accessibility, check, done, end, faults, page, url, client } from './browser.mjs'

const signIn = async (p, user, password, db = '') => {
  await p.getByLabel('Name').fill(user)
  await p.getByLabel('Password').fill(password)
  await p.getByLabel('Database of the user').fill(db)
  await p.getByRole('button', { name: 'Sign in' }).click()
}

await client.db('shop').collection('carts').insertMany([{ _id: 1 }, { _id: 2 }])

await check('nobody sees anything before, and a wrong password is refused', async () => {
  const p = await page('#/c/shop/carts/documents')
  await p.getByRole('heading', { name: 'Sign in as a user of the database' }).waitFor()
  assert.deepEqual(await accessibility(p), [])
  assert.equal(await p.getByText('shop').count(), 0)
  await signIn(p, 'boss', 'wrong')
  await p.getByText('Authentication failed.').waitFor()
  await p.context().close()
})

await check('a user who logs in sees, and stays through a reload; out is out', async () => {
  const p = await page('#/c/shop/carts/documents')
  await signIn(p, 'boss', 'p@ss')
  await p.getByText('2 documents').waitFor()
  await p.getByText('signed in as boss').waitFor()
  await p.reload()
  await p.getByText('2 documents').waitFor()
  assert.equal((await p.evaluate(() => document.cookie)), '')
  await p.getByRole('button', { name: 'sign out' }).click()
  await p.getByRole('heading', { name: 'Sign in as a user of the database' }).waitFor()
  await p.goto(url + '#/')
  await p.getByRole('heading', { name: 'Sign in as a user of the database' }).waitFor()
  await p.context().close()
})

await check('a user who may only read is refused what is more', async () => {
  const p = await page('#/c/shop/carts/documents')
  await signIn(p, 'reader', 'r', 'shop')
  await p.getByText('2 documents').waitFor()
  await p.getByLabel('Select 1').check()
  await p.getByRole('button', { name: 'Delete' }).click()
  await p.getByLabel('Type 1 to confirm').fill('1')
  await p.getByRole('dialog').getByRole('button', { name: 'Delete' }).click()
  await p.getByText(/not authorized/).first().waitFor()
  assert.equal(await client.db('shop').collection('carts').countDocuments(), 2)
  await p.goto(url + '#/c/shop/carts/expiry?change=_ts&ttl=1%20day&mode=on')
  await p.getByText(/not authorized/).first().waitFor()
  await p.context().close()
})

await check('users are added and dropped', async () => {
  const p = await page('#/settings/users')
  await signIn(p, 'boss', 'p@ss')
  await p.getByRole('heading', { name: 'Two users.' }).waitFor()
  await p.getByRole('button', { name: 'Add a user' }).click()
  await p.getByRole('dialog').getByLabel('Name').fill('third')
  await p.getByRole('dialog').getByLabel('Password').fill('t')
  await p.getByLabel(/Roles, such as/).fill('readWrite@shop')
  await p.getByRole('dialog').getByRole('button', { name: 'Add' }).click()
  await p.getByRole('heading', { name: 'Three users.' }).waitFor()
  await p.getByRole('button', { name: 'Drop third' }).click()
  await p.getByLabel('Type third to confirm').fill('third')
  await p.getByRole('dialog').getByRole('button', { name: 'Drop' }).click()
  await p.getByRole('heading', { name: 'Two users.' }).waitFor()
  await p.context().close()
})

await check('pages ask nobody else, run nothing foreign, and do not fail', () => assert.deepEqual(faults, []))

await end()
done()
