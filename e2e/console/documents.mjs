// Documents in the browser: found, changed, put off, exported; and what hostile ones try.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { Long, Decimal128, ObjectId } from 'mongodb'
import { check, client, done, end, faults, page, url } from './browser.mjs'

const db = client.db('shop')
const carts = db.collection('carts')
await db.command({ createIndexes: 'carts', indexes: [{ key: { _ts: 1 }, name: '_ts_1', expireAfterSeconds: 3600 }, { key: { endsAt: 1 }, name: 'endsAt_1', expireAfterSeconds: 0 }] })
await carts.insertMany(Array.from({ length: 900 }, (_, i) => ({ _id: `c${String(i).padStart(3, '0')}`, total: i, user: `u${i % 7}`, ...(i === 5 ? { ttl: 20.5, endsAt: '2030-01-01' } : {}), ...(i === 6 ? { endsAt: new Date(Date.now() + 1800e3) } : {}) })))

await check('documents are found by a filter, sorted, and counted', async () => {
  const p = await page('#/c/shop/carts/documents')
  await p.getByText('900 documents').waitFor()
  await p.getByRole('textbox', { name: 'filter' }).click()
  await p.keyboard.type('{ total: { $gte: 890 } }')
  await p.keyboard.press('Escape')
  await p.getByRole('button', { name: 'Find', exact: true }).click()
  await p.getByText('10 documents').waitFor()
  await p.getByRole('button', { name: 'total', exact: true }).click()
  await p.getByRole('button', { name: /total/ }).first().click()
  await p.locator('tbody tr', { hasText: 'c899' }).waitFor()
  assert.match(await p.locator('tbody tr').first().innerText(), /c899/)
  assert.match(decodeURIComponent(p.url()), /gte.*890/)
  await p.context().close()
})

await check('an aggregation runs', async () => {
  const p = await page('#/c/shop/carts/documents?mode=aggregate&pipe=' + encodeURIComponent('[{ $group: { _id: "$user", n: { $sum: 1 } } }, { $sort: { _id: 1 } }]'))
  await p.locator('tbody tr', { hasText: 'u6' }).waitFor()
  assert.equal(await p.locator('tbody tr').count(), 7)
  await p.context().close()
})

await check('a wrong filter says what is wrong, and nothing more', async () => {
  const p = await page('#/c/shop/carts/documents?q=' + encodeURIComponent('{ total: { $gtx: 1 } }'))
  await p.getByText('unknown operator: $gtx').waitFor()
  await p.goto(url + '#/c/shop/carts/documents?q=' + encodeURIComponent('{ total: '))
  await p.getByText('a value is missing').waitFor()
  await p.context().close()
})

await check('a document is changed, with all of its types kept', async () => {
  const id = new ObjectId()
  const was = { _id: id, '2': 1, '1': 2.5, __proto__x: 1, long: Long.fromString('9007199254740993'), dec: Decimal128.fromString('1.10'), at: new Date(0), nested: { b: [1, { c: null }], re: /a\/b/i }, text: 'x' }
  await db.collection('types').insertOne(new Map(['_id', '2', '1', '__proto__x', 'long', 'dec', 'at', 'nested', 'text'].map(k => [k, was[k]]))) // an object would put numbers first
  const p = await page(`#/c/shop/types/documents?doc=${encodeURIComponent(JSON.stringify({ $oid: id.toHexString() }))}`)
  await p.getByRole('button', { name: 'Edit' }).click()
  await p.getByRole('textbox', { name: 'document' }).click()
  await p.keyboard.press('Control+End')
  await p.keyboard.press('ArrowLeft')
  await p.keyboard.press('ArrowLeft')
  await p.keyboard.type(', added: true')
  await p.getByRole('button', { name: 'Save' }).click()
  await p.getByText('It is saved').waitFor()
  const now = await db.collection('types').findOne({ _id: id }, { promoteValues: false, promoteLongs: false })
  const [raw] = await db.collection('types').aggregate([{ $match: { _id: id } }, { $project: { keys: { $map: { input: { $objectToArray: '$$ROOT' }, in: { $concat: ['$$this.k', ':', { $type: '$$this.v' }] } } } } }]).toArray()
  assert.deepEqual(raw.keys, ['_id:objectId', '2:int', '1:double', '__proto__x:int', 'long:long', 'dec:decimal', 'at:date', 'nested:object', 'text:string', 'added:bool'])
  assert.equal(String(now.long), '9007199254740993')
  await p.context().close()
})

await check('what somebody else has written meanwhile is not overwritten', async () => {
  await db.collection('types').insertOne({ _id: 'race', n: 1 })
  const p = await page('#/c/shop/types/documents?doc=%22race%22')
  await p.getByRole('button', { name: 'Edit' }).click()
  await db.collection('types').updateOne({ _id: 'race' }, { $set: { n: 2 } })
  await p.getByRole('button', { name: 'Save' }).click()
  await p.getByText('It was changed or deleted meanwhile.').waitFor()
  assert.equal((await db.collection('types').findOne({ _id: 'race' })).n, 2)
  await p.context().close()
})

await check('documents are inserted', async () => {
  const p = await page('#/c/shop/types/documents')
  await p.getByRole('button', { name: 'Insert' }).click()
  await p.getByRole('textbox', { name: 'document' }).click()
  await p.keyboard.press('Control+A')
  await p.keyboard.insertText("{ _id: 'new', at: ISODate('2026-01-02T03:04:05Z'), n: Long('5') }")
  await p.getByRole('dialog').getByRole('button', { name: 'Insert' }).click()
  await p.getByText('It is inserted').waitFor()
  assert.equal((await db.collection('types').findOne({ _id: 'new' })).at.toISOString(), '2026-01-02T03:04:05.000Z')
  await p.context().close()
})

await check('documents are kept for longer, pinned, and deleted after their number is typed', async () => {
  const p = await page('#/c/shop/carts/documents?q=' + encodeURIComponent('{ user: "u3" }') + '&sort=' + encodeURIComponent('{ _id: 1 }'))
  await p.getByLabel('Select "c003"').check()
  await p.getByLabel('Select "c010"').check()
  await p.getByRole('button', { name: 'Keep for…' }).click()
  await p.getByLabel('for how long').fill('14 days')
  await p.getByRole('button', { name: 'Keep', exact: true }).click()
  await p.getByText('2 documents kept for 14 days').waitFor()
  assert.equal((await carts.findOne({ _id: 'c003' })).ttl, 1209600)
  await p.getByText('in 13 days').first().waitFor()
  await p.getByLabel('Select "c017"').check()
  await p.getByRole('button', { name: 'Pin' }).click()
  await p.getByRole('dialog').getByRole('button', { name: 'Pin' }).click()
  await p.getByText('1 document pinned').waitFor()
  assert.equal((await carts.findOne({ _id: 'c017' })).ttl, -1)
  await p.getByLabel('Select "c024"').check()
  await p.getByRole('button', { name: 'Delete' }).click()
  await p.getByLabel('Type 1 to confirm').fill('1')
  await p.getByRole('dialog').getByRole('button', { name: 'Delete' }).click()
  await p.getByText('1 document deleted').waitFor()
  assert.equal(await carts.countDocuments({ _id: 'c024' }), 0)
  await p.context().close()
})

await check('why a document stays or goes, in a sentence', async () => {
  const p = await page('#/c/shop/carts/why')
  await p.getByLabel('Why does the document').fill('c006')
  await p.getByRole('button', { name: 'Ask' }).click()
  await p.getByRole('heading', { name: /^It goes in (29|30) min.*the time in endsAt\.$/ }).waitFor()
  await p.goto(url + '#/c/shop/carts/why?id=%22c005%22')
  await p.getByText(/whole number/).first().waitFor()
  await p.goto(url + '#/c/shop/carts/why?id=%22c017%22')
  await p.getByRole('heading', { name: 'It never goes.' }).waitFor()
  await p.getByRole('button', { name: 'Keep it for…' }).click()
  await p.getByLabel('for how long').fill('2 hours')
  await p.getByRole('button', { name: 'Keep', exact: true }).click()
  await p.getByRole('heading', { name: /by a ttl of its own/ }).waitFor()
  await p.goto(url + '#/c/shop/carts/why?id=%22none%22')
  await p.getByRole('heading', { name: 'There is no such document.' }).waitFor()
  await p.context().close()
})

await check('what is kept is kept by all of its dates, and what is not is told', async () => {
  const many = db.collection('many'), inside = db.collection('inside')
  const at = minutes => new Date(Date.now() + minutes * 60e3), least = Date.now() + 86400e3 - 5000
  await many.createIndex({ at: 1 }, { expireAfterSeconds: 1, name: 'at_1' })
  await many.insertOne({ _id: 'list', at: [at(30), 'x', at(4320)], z: 1 })
  await db.command({ createIndexes: 'inside', indexes: [{ key: { _ts: 1 }, name: '_ts_1', expireAfterSeconds: 3600 }, { key: { 'm.at': 1 }, name: 'm', expireAfterSeconds: 0 }, { key: { 'l.0.at': 1 }, name: 'l', expireAfterSeconds: 0 }] })
  await inside.insertMany([{ _id: 'in', m: { a: 1, at: at(20), b: 2 } }, { _id: 'list', m: [{ at: at(20) }, 7, { c: 1 }] }, { _id: 'none', m: 5 }, { _id: 'place', l: [{ at: at(40) }] }])
  const keep = async (coll, id, said) => {
    const p = await page(`#/c/shop/${coll}/why?id=${encodeURIComponent(JSON.stringify(id))}`)
    await p.getByRole('button', { name: 'Keep it for…' }).click()
    await p.getByLabel('for how long').fill('1 day')
    await p.getByRole('button', { name: 'Keep', exact: true }).click()
    await p.getByText(said).first().waitFor()
    await p.context().close()
  }
  await keep('many', 'list', 'It is kept for a day')
  const list = await many.findOne({ _id: 'list' })
  assert.deepEqual(Object.keys(list), ['_id', 'at', 'z'])
  assert.equal(list.at[1], 'x')
  assert.ok(+list.at[0] >= least && +list.at[2] >= least, JSON.stringify(list))
  for (const id of ['in', 'list', 'none']) await keep('inside', id, 'It is kept for a day')
  const kept = await inside.findOne({ _id: 'in' }), each = await inside.findOne({ _id: 'list' })
  assert.deepEqual([Object.keys(kept.m), kept.m.at >= least, kept.ttl, 'l' in kept], [['a', 'at', 'b'], true, 86400, false])
  assert.deepEqual([each.m[0].at >= least, each.m[1], each.m[2]], [true, 7, { c: 1 }])
  assert.equal((await inside.findOne({ _id: 'none' })).m, 5)
  await keep('inside', 'place', 'It was changed, but goes earlier all the same') // a place in a list is no field
})

await check('in the order in which they go nothing is offered for documents that are not listed', async () => {
  const dated = db.collection('dated')
  await dated.createIndex({ at: 1 }, { expireAfterSeconds: 1, name: 'at_1' })
  await dated.insertMany(Array.from({ length: 8 }, (_, i) => ({ _id: i, ...(i < 3 ? { at: new Date(Date.now() + 3600e3 * (i + 1)) } : {}) })))
  const p = await page('#/c/shop/dated/documents?by=deadline')
  await p.getByText(/^3 documents/).waitFor()
  assert.equal(await p.getByText('8 documents').count(), 0)
  await p.getByLabel('Select 0').check()
  await p.getByText('1 of 3 documents selected').waitFor()
  assert.equal(await p.getByText('select all').count(), 0)
  await p.getByLabel('Select all that are loaded').check()
  await p.getByRole('button', { name: 'Delete' }).click()
  await p.getByLabel('Type 3 to confirm').fill('3')
  await p.getByRole('dialog').getByRole('button', { name: 'Delete' }).click()
  await p.getByText('3 documents deleted').waitFor()
  assert.equal(await dated.countDocuments(), 5)
  await p.context().close()
})

await check('what is found is exported', async () => {
  const p = await page('#/c/shop/types/documents')
  await p.getByRole('button', { name: 'Export' }).click()
  const [file] = await Promise.all([p.waitForEvent('download'), p.getByRole('button', { name: 'JSON' }).click()])
  const lines = readFileSync(await file.path(), 'utf8').trim().split('\n')
  assert.equal(lines.length, await db.collection('types').countDocuments())
  assert.match(lines[0], /"\$numberLong":"9007199254740993"/)
  await p.context().close()
})

await check('what is odd takes no screen away', async () => {
  const p = await page('#/')
  const said = await p.evaluate(async () => {
    const { token } = await (await fetch('/api/session', { headers: { 'X-Ebb-Console': '1' } })).json()
    const headers = { 'X-Ebb-Console': '1', 'X-Ebb-Token': token, 'Content-Type': 'application/json' }
    return (await fetch('/api/command', { method: 'POST', headers, body: '{"insert":"odd","documents":[{"_id":"twice","a":{"b":1,"b":2}}],"$db":"shop"}' })).text()
  })
  assert.match(said, /"n":\{"\$numberInt":"1"\}/)
  await db.collection('odd').insertOne({ _id: 'far' })
  await db.collection('odd').updateOne({ _id: 'far' }, [{ $set: { at: { $add: [new Date(8.64e15), Long.fromString('1000000')] } } }])
  await p.goto(url + '#/c/shop/odd/documents')
  await p.locator('tbody tr', { hasText: 'twice' }).click()
  await p.getByText('A field is there twice').waitFor()
  assert.equal(await p.getByRole('button', { name: 'Edit' }).count(), 0)
  await p.getByRole('button', { name: 'Close' }).click()
  await p.getByRole('button', { name: 'Export' }).click()
  const [file] = await Promise.all([p.waitForEvent('download'), p.getByRole('button', { name: 'CSV' }).click()])
  assert.match(readFileSync(await file.path(), 'utf8'), /far/)
  await db.command({ profile: 2 })
  await assert.rejects(db.command({ aggregate: 'odd', pipeline: 5 }))
  await db.command({ profile: 0 })
  await p.goto(url + '#/operations/slow')
  await p.reload() // which reads that there is a profile
  await p.getByText('aggregate [').first().waitFor()
  await p.context().close()
})

await check('scripts in values, names of fields, collections and indexes are text', async () => {
  const bad = '<img src=x onerror=alert(1)>', script = '"><script>alert(2)</script>'
  const name = 'x<svg onload=alert(3)>'
  await db.collection(name).insertMany([{ _id: bad, [bad]: script, url: 'javascript:alert(4)', nested: { [script]: bad } }, { _id: { [bad]: script } }])
  await db.collection(name).createIndex({ [script.replaceAll('.', '')]: 1 }, { name: bad, expireAfterSeconds: 60 })
  const p = await page('#/')
  for (const tab of ['documents', 'expiry', 'indexes', 'why', `why?id=${encodeURIComponent(JSON.stringify(bad))}`, `documents?doc=${encodeURIComponent(JSON.stringify(bad))}`, 'expiry?change=' + encodeURIComponent(bad)]) {
    await p.goto(`${url}#/c/shop/${encodeURIComponent(name)}/${tab}`)
    await p.getByText(name).first().waitFor()
    await p.waitForTimeout(700)
  }
  await p.goto(url + '#/c/shop/carts/documents?q=' + encodeURIComponent('{ $where: "</script><script>alert(5)</script>" }'))
  await p.waitForTimeout(500)
  await p.goto(url + '#/' + encodeURIComponent(bad) + '/' + encodeURIComponent(script))
  await p.getByText('There is nothing at this address.').waitFor()
  assert.equal(await p.locator('img, svg[onload]').count(), 0)
  await p.context().close()
})

await check('a server that is not there greys the figures and says so', async () => {
  const p = await page('#/')
  await p.getByRole('heading', { name: /Expiry is|held/ }).waitFor()
  await p.route('**/api/**', r => r.abort())
  await p.getByText(/No answer from the server since/).waitFor()
  await p.unroute('**/api/**')
  await p.getByText(/No answer from the server since/).waitFor({ state: 'detached' })
  await p.context().close()
  for (let i = faults.length - 1; i >= 0; i--) if (/net::ERR_FAILED/.test(faults[i])) faults.splice(i, 1) // which the test itself has made
})

await check('pages ask nobody else, run nothing foreign, and do not fail', () => assert.deepEqual(faults, []))

await end()
done()
