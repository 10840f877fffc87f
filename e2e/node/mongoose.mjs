// mongoose: schemas with `expires`, and what an application does with models.
import assert from 'node:assert/strict';
import mongoose from 'mongoose';
import { check, done, eventually, reclaim, refused, second, sleepUntil, uri } from './tap.mjs';

const { Schema } = mongoose;
const connection = await mongoose.createConnection(uri, { dbName: 'e2e_mongoose' }).asPromise();
await connection.dropDatabase();

const slow = [tokensExpire(), ttlPerDocument()];

await check('models: validate, save, query, populate', async () => {
  const Author = connection.model('Author', new Schema({ name: { type: String, required: true, unique: true } }, { timestamps: true }));
  const Book = connection.model('Book', new Schema({ title: String, pages: { type: Number, min: 1 }, author: { type: Schema.Types.ObjectId, ref: 'Author' } }));
  await Promise.all([Author.init(), Book.init()]);
  const ada = await Author.create({ name: 'Ada' });
  assert.ok(ada.createdAt instanceof Date);
  await Book.create([{ title: 'Notes', pages: 65, author: ada }, { title: 'Letters', pages: 300, author: ada }]);
  await assert.rejects(Book.create({ pages: 0 }), mongoose.Error.ValidationError);
  await refused(Author.create({ name: 'Ada' }), 11000);
  const book = await Book.findOne({ title: /^not/i }).populate('author').lean();
  assert.equal(book.author.name, 'Ada');
  ada.name = 'Ada Lovelace';
  await ada.save();
  assert.equal((await Author.findById(ada.id)).name, 'Ada Lovelace');
  assert.equal((await Book.findOneAndUpdate({ title: 'Notes' }, { $inc: { pages: 1 } }, { returnDocument: 'after' })).pages, 66);
  assert.deepEqual(await Book.aggregate([{ $group: { _id: '$author', pages: { $sum: '$pages' } } }, { $project: { _id: 0 } }]), [{ pages: 366 }]);
  assert.equal((await Book.deleteMany({})).deletedCount, 2);
  assert.equal(await Book.exists({}), null);
});

await check('cursors and bulk writes', async () => {
  const Number_ = connection.model('Number', new Schema({ n: Number }));
  await Number_.insertMany(Array.from({ length: 500 }, (_, n) => ({ n })));
  let sum = 0;
  for await (const doc of Number_.find().cursor({ batchSize: 50 })) sum += doc.n;
  assert.equal(sum, 124750);
  const result = await Number_.bulkWrite([{ updateMany: { filter: { n: { $lt: 10 } }, update: { $set: { small: true } } } }, { deleteOne: { filter: { n: 499 } } }], { strict: false });
  assert.deepEqual([result.modifiedCount, result.deletedCount], [10, 1]);
});

await check('a document changed meanwhile is noticed', async () => {
  const Account = connection.model('Account', new Schema({ lines: [Number] }, { optimisticConcurrency: true }));
  const { id } = await Account.create({ lines: [1] });
  const [one, two] = [await Account.findById(id), await Account.findById(id)];
  one.lines.push(2);
  await one.save();
  two.lines.push(3);
  await assert.rejects(two.save(), mongoose.Error.VersionError);
});

await check('another `expires` for an existing index is refused, as by MongoDB', async () => {
  const first = connection.model('First', new Schema({ at: { type: Date, expires: 60 } }), 'changing');
  await first.init();
  const second_ = connection.model('Second', new Schema({ at: { type: Date, expires: 120 } }, { autoIndex: false }), 'changing');
  await refused(second_.createIndexes(), 85, 'IndexOptionsConflict');
  await connection.db.command({ collMod: 'changing', index: { name: 'at_1', expireAfterSeconds: 120 } });
  await second_.createIndexes();
});

await Promise.all(slow);
await connection.close();
done();

function tokensExpire() {
  return check('a schema with expires', async () => {
    const Token = connection.model('Token', new Schema({ secret: String, createdAt: { type: Date, default: Date.now, expires: 3 } }));
    await Token.init();
    const [, index] = await Token.collection.indexes();
    assert.deepEqual([index.key, index.expireAfterSeconds], [{ createdAt: 1 }, 3]);
    const before = Date.now();
    const { id } = await Token.create({ secret: 'x' });
    await sleepUntil(before + second);
    const seen = await Token.exists({ _id: id });
    if (Date.now() < before + 3 * second) assert.ok(seen, 'before its time');
    await eventually(3 * second + reclaim, 'the token goes', async () => !(await Token.exists({ _id: id })));
    assert.ok(Date.now() >= before + 3 * second, 'gone before its time');
  });
}

function ttlPerDocument() {
  return check('a schema with ttl in documents', async () => {
    const schema = new Schema({ ttl: Number });
    schema.index({ _ts: 1 }, { expireAfterSeconds: 10 });
    const Event = connection.model('Event', schema);
    await Event.init();
    const before = Date.now();
    const [, valid] = await Event.create([{ ttl: 20.5 }, { ttl: 20 }], { ordered: true });
    const after = Date.now();
    await sleepUntil(before + 8 * second);
    const seen = await Event.countDocuments();
    assert.ok(Date.now() < before + 10 * second, 'this machine is too slow to say');
    assert.equal(seen, 2);
    await sleepUntil(after + 10 * second + 50);
    const left = await Event.find();
    assert.ok(Date.now() < before + 20 * second, 'this machine is too slow to say');
    assert.deepEqual(left.map((e) => e.id), [valid.id]);
    await sleepUntil(after + 20 * second + 50);
    assert.equal(await Event.countDocuments(), 0);
  });
}
