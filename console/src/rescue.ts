// Documents that are to live longer: for a while, or for good.
import { now as serverNow, run } from './api'
import { explainMany } from './expiry'
import type { Input, Value } from './ejson'
import { exact, ttlWords } from './time'

export interface RuleOf { field: string; expireAfterSeconds: number }

/** How many documents were kept, and how many of them go earlier all the same; null where that was too much to ask. */
export interface Kept { n: number; early: number | null }

/** How many documents are explained by one request, at most. */
const explained = 1000
/** By how much the browser may be wrong about the server's time: what goes that little earlier goes on time. */
const slack = 1500

/**
 * Has documents live for so many seconds from now on, by every rule there is: the document's ttl counts from this very change, and dates are moved
 * where there are any, also those of lists and of documents within. What "now" is the server says. Then it is asked what goes earlier all the same.
 */
export async function keepFor(db: string, coll: string, filter: Input, rules: RuleOf[], seconds: number): Promise<Kept> {
  const stages: Input[] = []
  for (const r of rules) {
    if (r.field === '_ts') stages.push({ $set: { ttl: { $literal: seconds } } })
    else if (r.field !== '_id') stages.push({ $replaceWith: moved(r.field.split('.'), '$$ROOT', { $add: ['$$NOW', Math.round((seconds - r.expireAfterSeconds) * 1000)] }) })
  }
  if (stages.length === 0) throw new Error('No rule here can be put off for single documents.')
  const until = serverNow() + seconds * 1000 - slack
  const n = written(await run(db, { update: coll, updates: [{ q: filter, u: stages, multi: true }] }))
  return { n, early: await goEarlier(db, coll, filter, until).catch(() => null) }
}

/** What was done, in words. Whoever wanted documents kept has to know of those that are not. */
export function keptWords(of: string, k: Kept, seconds: number): { text: string; bad: boolean } {
  const text = k.n === 0 ? 'There was nothing to keep any more' : `${of} kept for ${ttlWords(seconds)}`
  if (k.early === null) return { text: text + '; whether a rule has some go earlier is not known', bad: true }
  return k.early === 0 ? { text, bad: false } : { text: k.n === 1 ? 'It was changed, but goes earlier all the same' : `Of ${of} ${exact(k.early)} ${k.early === 1 ? 'goes' : 'go'} earlier all the same`, bad: true }
}

/** What an expression of documents, dates or lists of them gives, with the dates at a path of it moved. What is not there stays so. */
function moved(path: string[], of: Input, date: Input): Input {
  const isType = (t: string): Input => ({ $eq: [{ $type: '$$one' }, t] })
  const field = path.length > 0 ? { $literal: path[0] } : null
  const one: Input = field === null ? { $cond: [isType('date'), date, '$$one'] }
    : { $cond: [isType('object'), { $setField: { field, input: '$$one', value: moved(path.slice(1), { $getField: { field, input: '$$one' } }, date) } }, '$$one'] }
  // A value is taken for a list of one, so that what is done to each is written once: it would double with each part of the path.
  const isList: Input = { $isArray: ['$$all'] }
  const each: Input = { $map: { input: { $cond: [isList, '$$all', ['$$all']] }, as: 'one', in: one } }
  const whole: Input = { $let: { vars: { each }, in: { $cond: [isList, '$$each', { $first: '$$each' }] } } }
  return { $let: { vars: { all: of }, in: { $cond: [{ $eq: [{ $type: '$$all' }, 'missing'] }, '$$REMOVE', whole] } } }
}

/** How many of some documents go before a moment. */
async function goEarlier(db: string, coll: string, filter: Input, until: number): Promise<number> {
  const ids = idsOf(filter)
  if (!ids) {
    const reply = await run(db, { aggregate: coll, pipeline: [{ $ebbTTL: { until: new Date(until) } }, { $replaceRoot: { newRoot: '$document' } }, { $match: filter }, { $count: 'n' }], cursor: {}, maxTimeMS: 10_000 })
    return reply.cursor.firstBatch[0]?.n ?? 0
  }
  let n = 0
  for (let i = 0; i < ids.length;) {
    const told = await explainMany(db, coll, ids.slice(i, i + explained))
    if (told.size === 0) throw new Error('One document has too many rules to be told of.')
    i += told.size // which is fewer than asked for where a reply has no room for all
    for (const e of told.values()) if (e.found && e.expires && e.deadline! < until) n++
  }
  return n
}

/** The _ids that a filter names; null for one that is of another kind. */
function idsOf(filter: Input): Value[] | null {
  const id = (filter as { _id?: { $in?: Value[] } })._id
  return id?.$in ?? null
}

/** Has documents never go by the rule of the last change. */
export async function pin(db: string, coll: string, ids: Value[]): Promise<number> { return pinWhere(db, coll, { _id: { $in: ids } }) }

export async function pinWhere(db: string, coll: string, filter: Input): Promise<number> {
  return written(await run(db, { update: coll, updates: [{ q: filter, u: { $set: { ttl: -1 } }, multi: true }] }))
}

/** The number of documents that a write has found; what it could not do is an error. */
export function written(reply: any): number {
  const failed = reply.writeErrors?.[0]
  if (failed) throw new Error(failed.errmsg)
  if (reply.writeConcernError) throw new Error(reply.writeConcernError.errmsg)
  return reply.n
}
