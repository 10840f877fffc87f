// Where one is: every state of a screen is in the address, behind the #.
import { signal } from '@preact/signals'

export interface Place { path: string[]; query: URLSearchParams }

const read = (): Place => {
  const text = location.hash.replace(/^#\/?/, '')
  const [path, query] = text.includes('?') ? [text.slice(0, text.indexOf('?')), text.slice(text.indexOf('?') + 1)] : [text, '']
  return { path: path.split('/').filter(p => p !== '').map(decode), query: new URLSearchParams(query) }
}

function decode(s: string): string {
  try { return decodeURIComponent(s) } catch { return s }
}

export const place = signal<Place>(read())
addEventListener('hashchange', () => { place.value = read() })

/** The address of a place. */
export function href(path: string[], query: Record<string, string | number | undefined> = {}): string {
  const q = new URLSearchParams()
  for (const [k, v] of Object.entries(query)) if (v !== undefined && v !== '') q.set(k, String(v))
  const s = q.toString()
  return '#/' + path.map(encodeURIComponent).join('/') + (s ? '?' + s : '')
}

export const go = (to: string) => { location.hash = to }

/** Changes parts of the query, without a step in the browser's history unless asked for. */
export function setQuery(change: Record<string, string | number | undefined>, step = false) {
  const { path, query } = place.peek()
  const all: Record<string, string | number | undefined> = Object.fromEntries(query)
  const to = href(path, { ...all, ...change })
  if (to === location.hash) return
  if (step) history.pushState(null, '', to)
  else history.replaceState(null, '', to)
  place.value = read()
}

export const collection = (ns: string, tab: string, query: Record<string, string | number | undefined> = {}) => {
  const dot = ns.indexOf('.')
  return href(['c', ns.slice(0, dot), ns.slice(dot + 1), tab], query)
}
