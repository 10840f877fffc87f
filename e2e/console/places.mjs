// The screens of the console, and what is in the database that they are looked at with.
import { client } from './browser.mjs'

const now = Date.now()
const shop = client.db('shop')
await shop.command({ createIndexes: 'sessions', indexes: [{ key: { _ts: 1 }, name: '_ts_1', expireAfterSeconds: 1800 }, { key: { endsAt: 1 }, name: 'endsAt_1', expireAfterSeconds: 0 }] })
await shop.collection('sessions').insertMany(Array.from({ length: 5000 }, (_, i) => ({ _id: `s${i}`, user: `u${i % 90}`, ...(i % 3 === 0 ? { ttl: 60 + i } : {}), ...(i % 50 === 1 ? { ttl: -1 } : {}), ...(i % 70 === 2 ? { endsAt: 'soon' } : {}) })))
await client.db('admin').command({ createUser: 'somebody', pwd: 'x', roles: ['read'] })
await client.db('admin').command({ profile: 0, slowms: 0 })
await shop.collection('sessions').find({ user: 'u5' }).sort({ _id: -1 }).toArray()

export const screens = { tide: '#/', documents: '#/c/shop/sessions/documents', document: '#/c/shop/sessions/documents?doc=%22s4%22', aggregate: '#/c/shop/sessions/documents?mode=aggregate&pipe=' + encodeURIComponent('[{ $sortByCount: "$user" }]'),
  expiry: `#/c/shop/sessions/expiry?from=${now}&until=${now + 86400e3}`, change: '#/c/shop/sessions/expiry?change=_ts_1&ttl=1%20second', rule: '#/c/shop/sessions/expiry?change=new', why: '#/c/shop/sessions/why?id=%22s0%22', reasons: '#/c/shop/sessions/why',
  indexes: '#/c/shop/sessions/indexes?make=', running: '#/operations/running?own=1', slow: '#/operations/slow', connections: '#/operations/connections', log: '#/operations/log', storage: '#/storage', parameters: '#/settings/parameters', users: '#/settings/users', roles: '#/settings/roles', shapes: '#/operations/slow?of=all', indexesOfOne: '#/storage?open=shop.sessions' }
