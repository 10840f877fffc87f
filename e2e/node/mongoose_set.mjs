// mongoose on a replica set: its transactions in each form it has, streams of models that go on where they stopped, and what expires.
import assert from 'node:assert/strict';
import mongoose from 'mongoose';
import { check, done, opened, reclaim, second, uri, within } from './tap.mjs';

const { Schema } = mongoose;
const connection = await mongoose.createConnection(uri, { dbName: 'e2e_mongoose_set' }).asPromise();
await connection.dropDatabase();

const Account = connection.model('Account', new Schema({ _id: String, balance: { type: Number, min: 0 } }));
const Line = connection.model('Line', new Schema({ what: { type: String, unique: true } }, { timestamps: true }));
await Promise.all([Account.init(), Line.init()]);
await Account.create([{ _id: 'a', balance: 10 }, { _id: 'b', balance: 0 }]);

const balances = async () => (await Account.find().sort({ _id: 1 }).lean()).map((a) => a.balance);
const lines = async () => (await Line.find().sort({ what: 1 }).lean()).map((l) => l.what);

async function move(amount, what, session) {
  const [a, b] = await Account.find().sort({ _id: 1 }).session(session);
  a.balance -= amount;
  b.balance += amount;
  await b.save();
  const line = new Line({ what });
  await line.save({ session });
  await a.save(); // refused when the account is overdrawn
  return line;
}

await check('a transaction over two models is seen as a whole', async () => {
  await connection.transaction(async (session) => {
    await move(5, 'first', session);
    assert.deepEqual([await balances(), await lines()], [[10, 0], []]);
    assert.equal((await Account.findById('b').session(session)).balance, 5);
  });
  assert.deepEqual([await balances(), await lines()], [[5, 5], ['first']]);
});

await check('an error in it leaves nothing behind', async () => {
  await assert.rejects(connection.transaction((session) => move(50, 'second', session)), mongoose.Error.ValidationError);
  assert.deepEqual([await balances(), await lines()], [[5, 5], ['first']]);
  const line = new Line({ what: 'third' });
  await assert.rejects(connection.transaction(async (session) => {
    await line.save({ session });
    assert.equal(line.isNew, false);
    await Line.create([{ what: 'first' }], { session });
  }), (e) => e.code === 11000);
  assert.deepEqual([line.isNew, await lines()], [true, ['first']]);
  await line.save();
  assert.deepEqual(await lines(), ['first', 'third']);
});

await check('withTransaction begins again after a conflict', async () => {
  const session = await connection.startSession();
  let tries = 0;
  await session.withTransaction(async () => {
    const account = await Account.findById('a').session(session);
    if (++tries === 1) await Account.updateOne({ _id: 'a' }, { $inc: { balance: 1 } }); // another client, in between
    account.balance *= 2;
    await account.save();
  });
  await session.endSession();
  assert.deepEqual([tries, await balances()], [2, [12, 5]]);
});

await check('the session need not be passed on', async () => {
  mongoose.set('transactionAsyncLocalStorage', true);
  try {
    await assert.rejects(connection.transaction(async () => {
      await Account.updateOne({ _id: 'a' }, { $inc: { balance: -1 } });
      assert.equal((await Account.findById('a')).balance, 11);
      throw new Error('changed my mind');
    }), /changed my mind/);
  } finally {
    mongoose.set('transactionAsyncLocalStorage', false);
  }
  assert.deepEqual(await balances(), [12, 5]);
});

// listen collects the events of a model's stream; wait returns them when there are so many, and closes it.
async function listen(Model, options) {
  const stream = Model.watch([], options);
  const events = [];
  let stir = () => {};
  const failed = new Promise((_, reject) => stream.on('error', reject));
  failed.catch(() => {}); // wait tells
  stream.on('change', (event) => {
    events.push(event);
    stir();
  });
  await within(reclaim, 'the stream is ready', new Promise((ready) => stream.once('ready', ready)));
  await opened(stream.driverChangeStream);
  return {
    wait: async (n) => {
      const all = new Promise((enough) => {
        stir = () => events.length >= n && enough();
        stir();
      });
      await within(2 * reclaim, `${n} events`, Promise.race([all, failed]));
      await stream.close();
      return events;
    },
  };
}

await check('a stream of a model goes on where another has stopped', async () => {
  const Cat = connection.model('Cat', new Schema({ _id: Number, name: String }));
  await Cat.init();
  const stream = await listen(Cat, { fullDocument: 'updateLookup' });
  const mia = await Cat.create({ _id: 1, name: 'Mia' });
  mia.name = 'Mio';
  await mia.save();
  const first = await stream.wait(2);
  await connection.transaction(async (session) => {
    await Cat.create([{ _id: 2, name: 'Tom' }, { _id: 3, name: 'Max' }], { session, ordered: true });
    await Cat.deleteOne({ _id: 1 }, { session });
  });
  await Cat.findOneAndReplace({ _id: 2 }, { name: 'Kit' });
  const seen = [...first, ...(await (await listen(Cat, { resumeAfter: first[1]._id, fullDocument: 'updateLookup' })).wait(4))];
  assert.deepEqual(seen.map((e) => [e.operationType, e.documentKey._id, e.fullDocument?.name]), [
    ['insert', 1, 'Mia'], ['update', 1, 'Mio'], ['insert', 2, 'Tom'], ['insert', 3, 'Max'], ['delete', 1, undefined], ['replace', 2, 'Kit'],
  ]);
  assert.deepEqual(seen.map((e) => e.txnNumber != null), [false, false, true, true, true, false]);
});

await check('what a schema lets expire is told, with the document that went', async () => {
  const schema = new Schema({ _id: Number, at: { type: Date, default: Date.now, expires: 1 } }, { collectionOptions: { changeStreamPreAndPostImages: { enabled: true } }, versionKey: false });
  const Code = connection.model('Code', schema, 'codes', { overwriteModels: true });
  await Code.createCollection();
  await Code.syncIndexes();
  const stream = await listen(Code, { fullDocumentBeforeChange: 'required' });
  let at;
  await connection.transaction(async (session) => {
    at = (await new Code({ _id: 1 }).save({ session })).at;
    await new Code({ _id: 2, at: new Date(Date.now() + 3600 * second) }).save({ session });
  });
  const [, , gone] = await stream.wait(3);
  assert.deepEqual([gone.operationType, gone.fullDocumentBeforeChange, gone.expiration.index, gone.expiration.deadline], ['delete', { _id: 1, at }, 'at_1', new Date(+at + second)]);
  assert.deepEqual(await Code.distinct('_id'), [2]);
});

await connection.close();
done();
