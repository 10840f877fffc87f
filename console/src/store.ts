// What all screens share: the collections there are, the rules of expiry, the theme.
import { signal } from '@preact/signals'
import { useEffect, useRef, useState } from 'preact/hooks'
import { all, CommandError, lostSince, run, session, words } from './api'

export interface Coll { ns: string; db: string; name: string; type: string }
export const collections = signal<Coll[] | null>(null)
/** Numbers of documents, by namespace, as far as somebody has asked. */
export const counts = signal<Record<string, number>>({})

/** What the server says of itself to whoever connects: whether it is a member of a replica set, and which. */
export const hello = signal<{ setName?: string; isWritablePrimary?: boolean; me?: string } | null>(null)

const hidden = (db: string, name: string) => name.startsWith('system.') && name !== 'system.profile' || (db === 'local' || db === 'config' || db === 'admin') && name.startsWith('system.')

/** Whether one may not ask for that. */
export const refused = (e: unknown) => e instanceof CommandError && (e.code === 13 || e.code === 40324)

/** Reads which collections there are that one may see: by one request where one may see all, or else database by database. */
export async function readCollections() {
  const found: Coll[] = []
  const add = (db: string, c: any) => { if (!hidden(db, c.name)) found.push({ ns: `${db}.${c.name}`, db, name: c.name, type: c.type }) }
  try {
    for (const c of await all('admin', { aggregate: 1, pipeline: [{ $listClusterCatalog: {} }, { $project: { ns: 1, db: 1, type: 1 } }], cursor: { batchSize: 10_000 } }, maxCollections)) add(c.db, { name: c.ns.slice(c.db.length + 1), type: c.type })
  } catch (e) {
    if (!refused(e)) throw e
    const dbs = await ownDatabases()
    await Promise.all(dbs.map(async db => {
      try { for (const c of await all(db, { listCollections: 1, nameOnly: true, authorizedCollections: true, cursor: { batchSize: 10_000 } })) add(db, c) } catch { /* one may see none of them */ }
    }))
  }
  const late = (db: string) => db === 'admin' || db === 'config' || db === 'local' ? 1 : 0
  const text = (a: string, b: string) => a < b ? -1 : a > b ? 1 : 0
  found.sort((a, b) => late(a.db) - late(b.db) || text(a.db, b.db) || text(a.name, b.name))
  if (JSON.stringify(found) !== JSON.stringify(collections.peek())) collections.value = found
}

/** The databases in which one may see something. */
export const ownDatabases = async (signal?: AbortSignal): Promise<string[]> => (await run('admin', { listDatabases: 1, nameOnly: true, authorizedDatabases: true }, signal)).databases.map((d: any) => d.name)

/** How many collections the console lists. */
const maxCollections = 100_000

/** What all collections are like: one request for those who may ask for it, and one each, of `few` of them, for others. */
export async function allStats(stats: 'count' | 'storageStats', few: Coll[], signal?: AbortSignal): Promise<any[]> {
  try {
    return await all('admin', { aggregate: 1, pipeline: [{ $_internalAllCollectionStats: { stats: { [stats]: {} } } }, { $project: { host: 0, localTime: 0, 'storageStats.indexDetails': 0 } }], cursor: { batchSize: 10_000 } }, maxCollections, signal)
  } catch (e) { if (!refused(e)) throw e }
  const out: any[] = []
  for (const c of few.filter(c => c.type !== 'view').slice(0, 200)) {
    try {
      out.push({ ns: c.ns, ...(stats === 'count' ? { count: (await run(c.db, { count: c.name }, signal)).n } : { storageStats: await run(c.db, { collStats: c.name }, signal) }) })
    } catch (e) { if (!refused(e)) throw e }
  }
  return out
}

/** How many time series are counted one by one. */
const maxSeries = 20

/** Asks how many documents there are, of all collections, or of those that are seen. */
export async function readCounts(seen: Coll[], signal?: AbortSignal) {
  const found: Record<string, number> = {}
  const series = new Set((collections.peek() ?? []).filter(c => c.type === 'timeseries').map(c => c.ns))
  for (const c of await allStats('count', seen, signal)) if (!series.has(c.ns)) found[c.ns] = c.count
  // Of a time series the statistics count buckets, and not what was measured.
  for (const c of seen.filter(c => series.has(c.ns)).slice(0, maxSeries)) {
    try { found[c.ns] = (await run(c.db, { count: c.name }, signal)).n } catch (e) { if (!refused(e)) throw e }
  }
  if (JSON.stringify(found) !== JSON.stringify(counts.peek())) counts.value = found
}

// ---- reading again and again ----

export interface Loaded<T> { data: T | undefined; fault: string; again: () => void; at: number }

/**
 * Reads something when a screen opens, and again after `every` milliseconds as long as the page is seen; 0 for once. A page that nobody sees reads
 * nothing, and reads at once when it is seen again. What takes long is read less often: it rests `rest` times as long as it took. `key` is what
 * the reading depends on.
 */
export function useLoad<T>(key: string, read: (signal: AbortSignal) => Promise<T>, every = 0, rest = 9): Loaded<T> {
  const [state, set] = useState<{ key: string; data?: T; fault: string; at: number }>({ key, fault: '', at: 0 })
  const reading = useRef(read)
  reading.current = read
  const [turn, setTurn] = useState(0)
  const who = session.value?.token
  useEffect(() => {
    if (!who) return // nobody is there yet
    const abort = new AbortController()
    let timer = 0
    const step = async () => {
      if (document.hidden && every > 0) {
        document.addEventListener('visibilitychange', step, { once: true, signal: abort.signal })
        return
      }
      const began = performance.now()
      try {
        const data = await reading.current(abort.signal)
        if (!abort.signal.aborted) set({ key, data, fault: '', at: Date.now() })
      } catch (e) {
        if (abort.signal.aborted) return
        set(s => ({ key, data: s.key === key ? s.data : undefined, fault: lostSince.peek() ? s.fault : words(e), at: s.at }))
      }
      if (every > 0 && !abort.signal.aborted) timer = window.setTimeout(step, Math.max(every, rest * (performance.now() - began)))
    }
    void step()
    return () => {
      abort.abort()
      clearTimeout(timer)
    }
  }, [key, turn, every, who])
  return { data: state.key === key ? state.data : undefined, fault: state.key === key ? state.fault : '', again: () => setTurn(t => t + 1), at: state.at }
}

// ---- the theme ----

export type Theme = 'system' | 'light' | 'dark'
const stored = (): Theme => {
  const asked = new URLSearchParams(location.search).get('theme')
  if (asked === 'light' || asked === 'dark') return asked
  try { return (localStorage.getItem('ebb.theme') as Theme) || 'system' } catch { return 'system' }
}
export const theme = signal<Theme>(stored())
export const isDark = signal(false)
const preferred = matchMedia('(prefers-color-scheme: dark)')
export function applyTheme() {
  isDark.value = theme.value === 'dark' || theme.value === 'system' && preferred.matches
  document.documentElement.dataset.theme = isDark.value ? 'dark' : 'light'
}
preferred.addEventListener('change', applyTheme)
export function setTheme(t: Theme) {
  theme.value = t
  try { localStorage.setItem('ebb.theme', t) } catch { /* it is then asked for again */ }
  applyTheme()
}
