// Numbers and times in words: rounded for the eye, exact where somebody looks closer.

export const second = 1000, minute = 60 * second, hour = 60 * minute, day = 24 * hour

/** 3.1 M; exact below a thousand. */
export function count(n: number): string {
  const a = Math.abs(n)
  for (const [size, unit] of [[1e12, 'T'], [1e9, 'B'], [1e6, 'M'], [1e3, 'k']] as const) {
    if (a < size * (size === 1e3 ? 1 : 0.9995)) continue
    const v = n / size
    return (Math.abs(v) >= 100 || size === 1e3 && Math.abs(v) >= 10 ? Math.round(v).toLocaleString('en') : v.toFixed(1)) + ' ' + unit
  }
  return Number.isInteger(n) ? String(n) : n.toFixed(1)
}

export const exact = (n: number): string => Math.round(n).toLocaleString('en')

export function bytes(n: number): string {
  for (const [size, unit] of [[2 ** 40, 'TB'], [2 ** 30, 'GB'], [2 ** 20, 'MB'], [2 ** 10, 'kB']] as const) {
    if (Math.abs(n) >= size) return (Math.abs(n) >= 100 * size ? Math.round(n / size) : (n / size).toFixed(1)) + ' ' + unit
  }
  return `${Math.round(n)} B`
}

/** How many of something there are: "one document", "3.1 M documents". */
export function many(n: number, one: string, more = one + 's'): string { return n === 1 ? `one ${one}` : n === 0 ? `no ${more}` : `${count(n)} ${more}` }

export const plural = (n: number, one: string, more = one + 's') => n === 1 ? one : more

/** Small numbers are words at the beginning of a sentence. */
export function Number_(n: number): string { return ['No', 'One', 'Two', 'Three', 'Four', 'Five', 'Six', 'Seven', 'Eight', 'Nine', 'Ten'][n] ?? exact(n) }

/** A span for the eye: "41 s", "3 h 12 min", "13 days". */
export function span(ms: number): string {
  const a = Math.abs(ms)
  if (a < 1000) return `${Math.round(a)} ms`
  if (a < minute) return a < 10 * second ? `${(Math.floor(a / 100) / 10).toFixed(1).replace(/\.0$/, '')} s` : `${Math.floor(a / second)} s`
  if (a < hour) return a < 10 * minute && a % minute >= second ? `${Math.floor(a / minute)} min ${Math.floor(a % minute / second)} s` : `${Math.floor(a / minute)} min`
  if (a < day) return a % hour >= minute ? `${Math.floor(a / hour)} h ${Math.floor(a % hour / minute)} min` : `${Math.floor(a / hour)} h`
  if (a < 60 * day) return a < 4 * day && a % day >= hour ? `${Math.floor(a / day)} d ${Math.floor(a % day / hour)} h` : `${Math.floor(a / day)} days`
  if (a < 730 * day) return `${Math.round(a / (30.44 * day))} months`
  return `${(a / (365.25 * day)).toFixed(a < 3652 * day ? 1 : 0)} years`
}

/** A number of seconds as a rule says it: "half an hour", "30 minutes", "14 days", "1 h 30 min". */
export function ttlWords(seconds: number): string {
  if (seconds === 0) return '0 seconds'
  const units: [number, string][] = [[31_536_000, 'year'], [604_800, 'week'], [86_400, 'day'], [3600, 'hour'], [60, 'minute'], [1, 'second']]
  for (const [size, name] of units) {
    if (seconds % size !== 0 || (name === 'week' && seconds / size > 1 && seconds % 86_400 === 0)) continue
    const n = seconds / size
    if (name === 'week' && n === 1) return 'a week'
    return n === 1 ? (name === 'hour' ? 'an hour' : `a ${name}`) : `${n.toLocaleString('en')} ${name}s`
  }
  return span(seconds * 1000)
}

/** Reads "10 minutes", "1h 30m", "600", "2 weeks"; null for what is none. Without a unit these are seconds. */
export function readSeconds(text: string): number | null {
  const t = text.trim().toLowerCase().replace(/,/g, '')
  if (/^-?\d+$/.test(t)) return Number(t)
  const units: Record<string, number> = { s: 1, sec: 1, secs: 1, second: 1, seconds: 1, m: 60, min: 60, mins: 60, minute: 60, minutes: 60, h: 3600, hr: 3600, hour: 3600, hours: 3600,
    d: 86_400, day: 86_400, days: 86_400, w: 604_800, week: 604_800, weeks: 604_800, month: 2_592_000, months: 2_592_000, y: 31_536_000, year: 31_536_000, years: 31_536_000 }
  let total = 0, rest = t, found = false
  const special = /^(half an hour|an? (second|minute|hour|day|week|month|year))$/.exec(t)
  if (special) return t === 'half an hour' ? 1800 : units[special[2]]
  while (rest !== '') {
    const m = /^\s*(\d+(?:\.\d+)?)\s*([a-z]+)\s*(?:and\s+)?/.exec(rest)
    if (!m || !(m[2] in units)) return null
    total += Number(m[1]) * units[m[2]]
    rest = rest.slice(m[0].length)
    found = true
  }
  return found && Number.isInteger(total) ? total : null
}

const clock = new Intl.DateTimeFormat('en-GB', { hour: '2-digit', minute: '2-digit', second: '2-digit' })
const shortClock = new Intl.DateTimeFormat('en-GB', { hour: '2-digit', minute: '2-digit' })
const dayOf = new Intl.DateTimeFormat('en-GB', { day: 'numeric', month: 'short' })
const dayYear = new Intl.DateTimeFormat('en-GB', { day: 'numeric', month: 'short', year: 'numeric' })

const isSameDay = (a: number, b: number) => new Date(a).toDateString() === new Date(b).toDateString()

/** A moment, as precisely as it is near: "14:49:31", "tomorrow 09:00", "3 Dec 14:00", "1 Mar 2031". */
export function moment(ms: number, from: number): string {
  if (!Number.isFinite(new Date(ms).getTime())) return 'the end of time'
  if (isSameDay(ms, from)) return clock.format(ms)
  if (isSameDay(ms, from + day)) return 'tomorrow ' + shortClock.format(ms)
  if (isSameDay(ms, from - day)) return 'yesterday ' + shortClock.format(ms)
  if (Math.abs(ms - from) < 300 * day) return dayOf.format(ms) + ' ' + shortClock.format(ms)
  return dayYear.format(ms)
}

/** The exact moment, for tooltips. */
export function iso(ms: number): string {
  const d = new Date(ms)
  return Number.isNaN(d.getTime()) ? String(ms) : d.toISOString()
}

/** "in 18 min", "12 min ago". */
export const relative = (ms: number, from: number): string => Math.abs(ms - from) < 1000 ? 'now' : ms > from ? 'in ' + span(ms - from) : span(from - ms) + ' ago'
