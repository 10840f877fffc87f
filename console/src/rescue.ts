// Documents that are to live longer: for a while, or for good.
import { now as serverNow, run } from './api'
import { DateTime, type Input, type Value } from './ejson'

export interface RuleOf { field: string; expireAfterSeconds: number }

/**
 * Has documents live for so many seconds from now on, by every rule there is: the document's ttl counts from this very change, and dates are moved
 * where there are any. It returns how many there were.
 */
export async function keepFor(db: string, coll: string, filter: Input, rules: RuleOf[], seconds: number): Promise<number> {
  const set: Record<string, Input> = {}
  for (const r of rules) {
    if (r.field === '_ts') set.ttl = { $literal: seconds }
    else if (r.field !== '_id' && !r.field.includes('.')) {
      const date = new DateTime(Math.round(serverNow() + (seconds - r.expireAfterSeconds) * 1000))
      set[r.field] = { $cond: [{ $eq: [{ $type: '$' + r.field }, 'date'] }, date, '$' + r.field] }
    }
  }
  if (Object.keys(set).length === 0) throw new Error('No rule here can be put off for single documents.')
  return written(await run(db, { update: coll, updates: [{ q: filter, u: [{ $set: set }], multi: true }] }))
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
