import { MongoClient } from 'mongodb'
const c = await MongoClient.connect(process.argv[2])
const db = c.db('app'), now = Date.now()
await db.collection('events').createIndex({ at: 1 }, { expireAfterSeconds: 0, name: 'at_1' })
await db.command({ createIndexes: 'sessions', indexes: [{ key: { _ts: 1 }, name: '_ts_1', expireAfterSeconds: 86400 }] })
for (let i = 0; i < 1_000_000; i += 10_000) await db.collection('events').insertMany(Array.from({ length: 10_000 }, (_, k) => ({ _id: i + k, at: new Date(now + 3600e3 + (i + k) * 1000), user: 'u' + k % 90 })), { ordered: false })
for (let i = 0; i < 100_000; i += 10_000) await db.collection('sessions').insertMany(Array.from({ length: 10_000 }, (_, k) => ({ _id: i + k, user: 'u' + k % 90 })), { ordered: false })
for (let i = 0; i < 50; i++) { await db.collection('c' + i).createIndex({ at: 1 }, { expireAfterSeconds: 60 }); await db.collection('c' + i).insertOne({ at: new Date(now + 1e9) }) }
await c.close()
