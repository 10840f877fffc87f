// The Node.js driver over TLS, with and without a certificate, and by the Unix domain socket.
import assert from 'node:assert/strict';
import { MongoClient } from 'mongodb';
import { check, done, uri } from './tap.mjs';

const { EBB_BARE: bare, EBB_PLAIN: plain, EBB_OPEN: open, EBB_SOCKET: socket, EBB_X509: x509, EBB_STRANGER: stranger } = process.env;

async function works(at) {
  const client = new MongoClient(at, { compressors: ['zlib'] });
  try {
    const docs = client.db('e2e_tls').collection('node');
    await docs.deleteMany({});
    await docs.insertMany(Array.from({ length: 50 }, (_, i) => ({ _id: i, pad: 'x'.repeat(i * 1000) })));
    const got = await docs.find().sort({ _id: 1 }).toArray();
    assert.equal(got.length, 50);
    assert.equal(got[49].pad.length, 49_000);
    return (await client.db('admin').command({ whatsmyuri: 1 })).you;
  } finally {
    await client.close();
  }
}

async function refused(at) {
  const client = new MongoClient(at, { serverSelectionTimeoutMS: 500 });
  await assert.rejects(client.db('admin').command({ ping: 1 }));
  await client.close();
}

await check('over TLS with a certificate', () => works(uri));
await check('refused without a certificate', () => refused(bare));
await check('refused without TLS', () => refused(plain));
await check('logged in by the certificate', () => works(x509));
await check('not logged in by a certificate of no user', () => refused(stranger));
await check('without a certificate where that is allowed', () => works(open));
await check('by the Unix domain socket', async () => assert.equal(await works(socket), 'anonymous unix socket:27017'));
done();
