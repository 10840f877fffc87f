// What all screens share: the collections there are, the rules of expiry, the theme.
import { signal } from '@preact/signals'
import { useEffect, useRef, useState } from 'preact/hooks'
import { all, lostSince, run, session, words } from './api'

export interface Coll { ns: string; db: string; name: string; type: string; options: any }
export const collections = signal<Coll[] | null>(null)
/** Numbers of documents, by namespace, as far as somebody has asked. */
export const counts = signal<Record<string, number>>({})

const hidden = (db: string, name: string) => name.startsWith('system.') && name !== 'system.profile' || (db === 'local' || db === 'config' || db === 'admin') && name.startsWith('system.')

/** Reads which collections there are that one may see. */
export async function readCollections() {
  const dbs: string[] = (await run('admin', { listDatabases: 1, nameOnly: true, authorizedDatabases: true })).databases.map((d: any) => d.name)
  const found: Coll[] = []
  await Promise.all(dbs.map(async db => {
    try {
      for (const c of await all(db, { listCollections: 1, nameOnly: false, authorizedCollections: false, cursor: { batchSize: 1000 } })) add(db, c)
    } catch {
      try { for (const c of await all(db, { listCollections: 1, nameOnly: true, authorizedCollections: true, cursor: {} })) add(db, c) } catch { /* one may see none of them */ }
    }
  }))
  function add(db: string, c: any) { if (!hidden(db, c.name)) found.push({ ns: `${db}.${c.name}`, db, name: c.name, type: c.type, options: c.options ?? {} }) }
  const late = (db: string) => db === 'admin' || db === 'config' || db === 'local' ? 1 : 0
  found.sort((a, b) => late(a.db) - late(b.db) || a.db.localeCompare(b.db) || a.name.localeCompare(b.name))
  if (JSON.stringify(found) !== JSON.stringify(collections.peek())) collections.value = found
}

/** Asks how many documents there are, of collections that are looked at. */
export async function readCounts(of: Coll[]) {
  for (const c of of.filter(c => c.type !== 'view').slice(0, 150)) {
    try {
      const n = (await run(c.db, { count: c.name })).n
      if (counts.peek()[c.ns] !== n) counts.value = { ...counts.peek(), [c.ns]: n }
    } catch { /* one may not count it */ }
  }
}

// ---- reading again and again ----

export interface Loaded<T> { data: T | undefined; fault: string; again: () => void; at: number }

/**
 * Reads something when a screen opens, and again after `every` milliseconds as long as the page is seen; 0 for once. What takes long is read less
 * often: never more than a tenth of the time. `key` is what the reading depends on.
 */
export function useLoad<T>(key: string, read: (signal: AbortSignal) => Promise<T>, every = 0): Loaded<T> {
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
        timer = window.setTimeout(step, every)
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
      if (every > 0 && !abort.signal.aborted) timer = window.setTimeout(step, Math.max(every, 9 * (performance.now() - began)))
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
