// Expiry in the console's words: rules as sentences, states as colours, and the questions that the server answers about them.
import { now, run, runDoc } from './api'
import { keyOf, plain, type Doc, type Input, type Value } from './ejson'
import { ownDatabases, refused } from './store'
import { iso, relative, span, ttlWords } from './time'

/** A rule as {ebbTTL} tells of it. Times are milliseconds. */
export interface Rule {
  ns: string; index?: string; clustered?: true; timeseries?: true; field: string; expireAfterSeconds: number; hidesExpired: boolean; inert?: string
  oldestDeadline?: number; lagMillis?: number; backlog?: number; backlogIsMore?: true; modifiedInFuture?: number; ordered?: boolean; unclustered?: number; reclustered?: number; deadEntries?: number
  deleted?: number; deletedEver?: number; lastSweep?: number; lastDeleted?: number; graceUntil?: number; paused?: true; lastError?: string; nextSweep?: number
}
export interface Status { now: number; heldUpBy?: string; hold?: { at: number }; monitor: any; indexes: Rule[] }

export interface Bucket { from: number; to: number; count: number }
export interface Forecast extends Rule {
  exact: boolean; countedTo?: number; newestDeadline?: number; backlog?: number; buckets: Bucket[]; later: number; never?: number; keysExamined: number; asIf?: boolean
  reasons?: { reason: string; backlog: number; counts: number[]; later: number }[]
}

export const status = (db: string, coll?: string, signal?: AbortSignal): Promise<Status> => run(db, { ebbTTL: coll ?? 1 }, signal)

export const forecast = (db: string, coll: string | 1, buckets: number, until: number, signal?: AbortSignal): Promise<any> =>
  run(db, { ebbTTL: coll, forecast: { buckets, until: new Date(until) } }, signal)

/** Asks ebbTTL about all databases: at once where one may, or else about each of those in which one may. */
async function everywhere(question: { [key: string]: Input }, list: 'indexes' | 'collections', signal?: AbortSignal): Promise<any> {
  const ask = (db: string) => run(db, { ebbTTL: 1, ...question }, signal)
  try {
    return await ask('admin')
  } catch (e) {
    if (!refused(e)) throw e
    const told: any[] = []
    for (const db of await ownDatabases(signal)) {
      try { told.push(await ask(db)) } catch (x) { if (!refused(x)) throw x }
    }
    if (told.length === 0) throw e
    return { ...told[0], [list]: told.flatMap(t => t[list] ?? []), truncated: told.some(t => t.truncated) }
  }
}

/** The rules of all databases. */
export const statusOfAll = (signal?: AbortSignal): Promise<Status> => everywhere({}, 'indexes', signal)

/** When the documents of all collections go, in stretches that end so many milliseconds from now. */
export const tideForecast = (reaches: number[], signal?: AbortSignal): Promise<any> => everywhere({ forecast: { ends: reaches.map(r => new Date(now() + r)) } }, 'collections', signal)

/** What rules are told apart by within a collection. */
export const ruleName = (r: { index?: string; clustered?: true; timeseries?: true }): string => r.index ?? (r.clustered ? 'clustered' : 'timeseries')

/** The rule as a sentence. */
export function ruleWords(r: { field: string; expireAfterSeconds: number; clustered?: true; timeseries?: true }): string {
  const n = r.expireAfterSeconds
  if (r.field === '_ts') return n < 0 ? 'only by the ttl of each document' : `${n === 1800 ? 'half an hour' : ttlWords(n)} after the last change`
  if (r.timeseries) return `${ttlWords(n)} after the end of the cell of ${r.field}`
  const from = r.clustered ? 'the date in _id' : r.field
  return n === 0 ? `at the time in ${from}` : `${ttlWords(n)} after ${from}`
}

export type Tone = 'water' | 'soon' | 'late' | 'held' | ''

/** How late a sweep may be before it is behind: it is meant to be on time to the second. */
export const behindMillis = 5000

/** What is to be said of a rule at a look. */
export function ruleState(r: Rule, held?: string): { tone: Tone; text: string; title: string } {
  if (r.inert) return { tone: 'late', text: 'does nothing', title: r.inert }
  if (r.paused) return { tone: 'held', text: 'paused', title: 'Nothing is deleted here until somebody resumes it' }
  if (held) return { tone: 'held', text: 'held', title: held }
  if (r.lastError) return { tone: 'late', text: 'failed', title: r.lastError }
  if (r.graceUntil) return { tone: 'soon', text: 'waits', title: 'What was due as the rule was made or shortened is deleted later' }
  const lag = r.lagMillis ?? 0
  if (lag > behindMillis) return { tone: 'late', text: span(lag) + ' late', title: 'The oldest document past its deadline is still stored' }
  return { tone: 'water', text: lag > 0 ? span(lag) : 'on time', title: lag > 0 ? 'So long the oldest document is past its deadline' : 'Nothing is past its deadline' }
}

// ---- one document ----

export interface Explained {
  _id: Value; found: boolean; expires?: boolean; expired?: boolean; visible?: boolean; deadline?: number; by?: string; heldUpBy?: string; lastModified?: number; notes?: string[]
  rules?: { index?: string; clustered?: true; timeseries?: true; field: string; expireAfterSeconds: number; hidesExpired: boolean; deadline?: number; graceUntil?: number; reason: string; code?: string }[]
}

/** What one document's expiry is, in a few words. */
export function badge(e: Explained, now: number): { tone: Tone; text: string; title: string } {
  if (!e.found) return { tone: '', text: 'gone', title: 'It is not there any more' }
  if (!e.expires) {
    const why = (e.rules ?? []).map(r => r.reason)
    if (!e.rules?.length) return { tone: '', text: 'never', title: 'No rule applies' }
    const pinned = why.find(w => /\bttl\b.*-1|-1.*never/.test(w))
    return { tone: pinned ? 'held' : '', text: 'never: ' + (pinned ? 'ttl is −1' : short(why[0])), title: why.join('\n') }
  }
  const d = e.deadline!
  if (d <= now) return e.heldUpBy ? { tone: 'held', text: 'held up', title: e.heldUpBy } : { tone: 'late', text: `${span(now - d)} late`, title: 'It is past its deadline and about to be deleted' }
  return { tone: d - now < 24 * 3600e3 ? 'soon' : 'water', text: relative(d, now) + by(e), title: iso(d) }
}

const by = (e: Explained): string => {
  const r = e.rules?.find(r => r.deadline === e.deadline)
  return r && r.field !== '_ts' ? ` by ${r.index ?? r.field}` : r && /\bown ttl|document's ttl|its ttl/i.test(r.reason) ? ' by its ttl' : ''
}

const short = (s: string | undefined) => s === undefined ? '' : s.length > 42 ? s.slice(0, 41) + '…' : s

/** Explains many documents. */
export async function explainMany(db: string, coll: string, ids: Value[]): Promise<Map<string, Explained>> {
  const out = new Map<string, Explained>()
  if (ids.length === 0) return out
  const reply = await runDoc(db, { ebbTTL: coll, explainMany: ids })
  for (const d of reply.get('documents') as Doc[]) {
    const e = plain(d) as Explained
    e._id = d.get('_id')!
    out.set(keyOf(e._id), e)
  }
  return out
}

export async function explain(db: string, coll: string, id: Value, signal?: AbortSignal): Promise<Explained & { now: number }> {
  const e = await run(db, { ebbTTL: coll, explain: id }, signal)
  e._id = id
  return e
}
