// The tide: what goes, and when; what holds it up; how the server is.
import { useMemo, useState } from 'preact/hooks'
import { all, now as serverNow, run } from '../api'
import { behindMillis, forecast, ruleName, ruleState, ruleWords, status, type Forecast, type Rule, type Status } from '../expiry'
import { collection, place, setQuery } from '../router'
import { useLoad } from '../store'
import { bytes, count, day, exact, hour, many, minute, moment, Number_, plural, span } from '../time'
import { Badge, Bone, Fault, Panel, tipFor } from '../parts/ui'
import { Spark } from '../parts/charts'

/** The columns of the tide: up to when each goes from now; it begins where the one before ends. */
const columns: [string, number][] = [['1 min', minute], ['1 h', hour], ['6 h', 6 * hour], ['1 day', day], ['1 week', 7 * day], ['1 month', 30 * day], ['1 year', 365 * day]]

interface Row { ns: string; rule: Rule; cells: (number | null)[]; later: number | null; never: number | null; late: number; exact: boolean; at: number }

/** What three forecasts of different reach say of each rule, in the columns of the tide. */
function rowsOf(rules: Rule[], near: any, middle: any, far: any): Row[] {
  const find = (reply: any, r: Rule): Forecast | undefined => reply?.collections.find((c: any) => c.ns === r.ns)?.indexes.find((i: Forecast) => ruleName(i) === ruleName(r))
  const upTo = (f: Forecast | undefined, until: number) => f?.buckets?.filter(b => b.to <= until + 1).reduce((n, b) => n + b.count, 0) ?? null
  return rules.filter(r => !r.inert).map(r => {
    const a = find(near, r), b = find(middle, r), c = find(far, r)
    const sums = [upTo(a, near?.until), upTo(b, middle?.now + hour), upTo(b, middle?.now + 6 * hour), upTo(b, middle?.now + day), upTo(c, far?.now + 7 * day), upTo(c, far?.now + 30 * day), upTo(c, far?.until)]
    const cells = sums.map((n, i) => n === null || i > 0 && sums[i - 1] === null ? (i === 0 ? n : null) : Math.max(0, n - (i > 0 ? sums[i - 1]! : 0)))
    return { ns: r.ns, rule: r, cells, later: c?.later ?? null, never: c ? c.never ?? null : null, late: r.backlog ?? 0, exact: c?.exact ?? true, at: near?.now ?? serverNow() }
  })
}

const soonest = (r: Row) => {
  if (r.late > 0) return -1
  const i = r.cells.findIndex(n => n !== null && n > 0)
  return i >= 0 ? i : r.later ? 90 : 99
}

const maxRows = 60

export function Home() {
  const st = useLoad('tide', s => status('admin', undefined, s), 2000)
  const near = useLoad('tide.minute', s => forecast('admin', 1, 1, serverNow() + minute, s), 4000)
  const middle = useLoad('tide.day', s => forecast('admin', 1, 24, serverNow() + day, s), 20_000)
  const far = useLoad('tide.year', s => forecast('admin', 1, 365, serverNow() + 365 * day, s), 60_000)
  const text = place.value.query.get('q') ?? ''
  const show = Number(place.value.query.get('rows') ?? maxRows)
  const rows = useMemo(() => st.data ? rowsOf(st.data.indexes, near.data, middle.data, far.data) : [], [st.data, near.data, middle.data, far.data])
  const found = rows.filter(r => r.ns.toLowerCase().includes(text.toLowerCase())).sort((a, b) => soonest(a) - soonest(b) || a.ns.localeCompare(b.ns))
  const nextHour = rows.reduce((n, r) => n + (r.cells[0] ?? 0) + (r.cells[1] ?? 0), 0)
  const lag = st.data ? Math.max(0, ...st.data.indexes.filter(r => !r.paused).map(r => r.lagMillis ?? 0)) : 0
  return <>
    <h1>{st.data ? verdict(st.data) : st.fault ? 'What expires cannot be read.' : <Bone w="420px" h={26} />}</h1>
    <p class="lead">{st.data ? lead(st.data, near.data && middle.data ? nextHour : null, lag) : st.fault ? '' : <Bone w="600px" />}</p>
    <Fault text={st.fault} />
    <Panel title="What goes, and when" aside={<>{rows.length > 8 && <input type="search" aria-label="Show only collections called" placeholder="Filter" size={16} style={{ padding: '2px 9px' }} value={text} onInput={e => setQuery({ q: e.currentTarget.value })} />}
      <span class="faint">documents by deadline; a click opens them</span></>}>
      {st.data && rows.length === 0 ? <Nothing /> : <Tide rows={found.slice(0, show)} held={st.data?.heldUpBy} loading={!st.data} />}
      {found.length > show && <button class="link" style={{ marginTop: '10px' }} onClick={() => setQuery({ rows: show + 200 })}>{exact(found.length - show)} more {plural(found.length - show, 'rule')}</button>}
      {rows.some(r => !r.exact) && <p class="faint" style={{ marginTop: '10px' }}>Hatched: there is more to count than a forecast walks; what is later may be more than it says.</p>}
    </Panel>
    <Course status={st.data} lag={lag} />
    <Load />
  </>
}

/** Is all well? In one sentence. */
function verdict(s: Status): string {
  if (s.hold || s.heldUpBy) return `Expiry is held: nothing is deleted.`
  const rules = s.indexes.filter(r => !r.inert)
  if (rules.length === 0) return 'Nothing expires here yet.'
  const late = rules.filter(r => !r.paused && !r.graceUntil && (r.lagMillis ?? 0) > behindMillis)
  const held = heldUp(s).length
  const tail = held === 0 ? '' : ` ${Number_(held)} ${held === 1 ? 'thing is' : 'things are'} held up.`
  if (late.length > 0) {
    const worst = late.reduce((a, b) => (a.lagMillis ?? 0) > (b.lagMillis ?? 0) ? a : b)
    return `Expiry is ${span(worst.lagMillis!)} behind${late.length > 1 ? ` in ${Number_(late.length).toLowerCase()} collections` : ` in ${worst.ns}`}.${tail}`
  }
  return `Expiry is on time.${tail}`
}

function lead(s: Status, nextHour: number | null, lag: number): string {
  const parts: string[] = []
  if (s.hold) parts.push(`The clock of expiry stands still at ${moment(s.hold.at, s.now)}. When you have looked, release it: setParameter ttlHold: "release".`)
  else if (s.heldUpBy) parts.push(`The reason: ${s.heldUpBy}.`)
  if (s.indexes.length === 0) return 'A rule is made in the Expiry tab of a collection, or by createIndex with expireAfterSeconds.'
  if (nextHour !== null) parts.push(`${nextHour === 0 ? 'No document goes' : nextHour === 1 ? 'One document goes' : `${count(nextHour)} documents go`} in the next hour.`)
  const deleted = s.monitor?.deletedDocuments ?? 0
  parts.push(`${deleted === 0 ? 'None has' : deleted === 1 ? 'One has' : `${count(deleted)} have`} gone since the server started${lag > 0 ? `; the oldest that is due waits ${span(lag)}` : ''}.`)
  return parts.join(' ')
}

const Nothing = () => <p class="empty">No collection has a rule of expiry. Open one from the side, and switch expiry on.</p>

function Tide(p: { rows: Row[]; held?: string; loading: boolean }) {
  const from = (i: number) => i === 0 ? 0 : columns[i - 1][1]
  return <div class="scroll"><table class="tide">
    <thead><tr><th class="name"><span class="sr">collection and rule</span></th><th style={{ width: '58px' }}>late</th>{columns.map(([t]) => <th key={t}>{t}</th>)}<th>later</th><th style={{ width: '64px' }}>never</th><th class="last">lag</th></tr></thead>
    <tbody>
      {p.loading && [0, 1, 2, 3, 4].map(i => <tr key={i}><td class="name"><Bone w="60%" /></td>{Array.from({ length: 10 }, (_, j) => <td key={j}><Bone h={42} block /></td>)}<td class="last"><Bone w="50px" /></td></tr>)}
      {p.rows.map((r, k) => {
        const s = ruleState(r.rule, p.held)
        const open = (a: number | null, b: number | null) => collection(r.ns, 'expiry', { rule: ruleName(r.rule), from: a === null ? undefined : Math.round(r.at + a), until: b === null ? undefined : Math.round(r.at + b) })
        return <tr key={r.ns + ruleName(r.rule)}>
          <td class="name"><a href={collection(r.ns, 'expiry')} title={r.ns}>{k > 0 && p.rows[k - 1].ns === r.ns ? <span class="muted">{r.ns}</span> : r.ns}</a><span class="rule" title={ruleWords(r.rule)}>{ruleWords(r.rule)}</span></td>
          <Depth n={r.late} tone="late" to={open(null, 0)} what="are past their deadline" more={r.rule.backlogIsMore} />
          {r.cells.map((n, i) => <Depth key={i} n={n} tone={i === 0 ? 'soon' : 'water'} unsure={!r.exact && i > 3} to={open(from(i), columns[i][1])} what={`go within ${columns[i][0]}${i > 0 ? `, not within ${columns[i - 1][0]}` : ''}`} />)}
          <Depth n={r.later} tone="water" unsure={!r.exact} to={open(365 * day, null)} what="go later than in a year" />
          <Depth n={r.never} tone="never" to={collection(r.ns, 'why')} what="never go by this rule" />
          <td class="last"><Badge tone={s.tone} title={s.title}>{s.text}</Badge></td>
        </tr>
      })}
    </tbody>
  </table></div>
}

/** A cell: the more there is, the deeper its colour. */
function Depth(p: { n: number | null; tone: 'late' | 'soon' | 'water' | 'never'; to: string; what: string; unsure?: boolean; more?: boolean }) {
  if (p.n === null) return <td><span class="cell"><Bone w="60%" /></span></td>
  if (p.n === 0) return <td><span class="cell none" aria-label={`no documents ${p.what}`}>·</span></td>
  const share = p.tone === 'never' ? 30 : Math.round(100 * Math.min(.95, .14 + Math.log10(p.n) / 9.6))
  const deep = p.tone === 'water' && share > 66
  return <td><a class={'cell' + (p.unsure ? ' unsure' : '')} href={p.to} {...tipFor(() => `${exact(p.n!)}${p.more ? ' and more' : ''} ${plural(p.n!, 'document')} ${p.what}`)}
    style={{ backgroundColor: `color-mix(in srgb, var(--${p.tone}-bar) ${share}%, var(--panel))`, color: deep ? 'var(--on-deep)' : 'var(--ink)' }}><span class="sr">{p.what}: </span>{count(p.n)}{p.more ? '+' : ''}</a></td>
}

// ---- what holds expiry up ----

function heldUp(s: Status): { key: string; badge: [Parameters<typeof Badge>[0]['tone'], string]; ns: string; text: string }[] {
  const out: ReturnType<typeof heldUp> = []
  const paused = new Set<string>()
  for (const r of s.indexes) {
    if (r.paused && !paused.has(r.ns)) {
      paused.add(r.ns)
      const wait = s.indexes.filter(o => o.ns === r.ns).reduce((n, o) => n + (o.backlog ?? 0), 0)
      out.push({ key: r.ns + 'p', badge: ['held', 'paused'], ns: r.ns, text: wait > 0 ? `${many(wait, 'document')} ${wait === 1 ? 'waits' : 'wait'}` : 'nothing waits yet' })
    }
    if (r.inert) out.push({ key: r.ns + r.index + 'i', badge: ['late', 'does nothing'], ns: r.ns, text: `${r.index}: ${r.inert}` })
    if (r.lastError) out.push({ key: r.ns + ruleName(r) + 'e', badge: ['late', 'failed'], ns: r.ns, text: r.lastError })
    if (r.graceUntil && (r.backlog ?? 0) > 0) out.push({ key: r.ns + ruleName(r) + 'g', badge: ['soon', 'waits'], ns: r.ns, text: `${many(r.backlog!, 'document')} until ${moment(r.graceUntil, s.now)}, since the rule has changed` })
    if (r.modifiedInFuture) out.push({ key: r.ns + ruleName(r) + 'f', badge: ['soon', 'clock'], ns: r.ns, text: `${many(r.modifiedInFuture, 'document')} changed while the clock was ahead: they live longer by that` })
  }
  return out
}

/** The last hours as the server has kept them: a document a minute. */
interface Past { at: number; seconds: number; deleted: number; lagMillis: number; backlog: number; inserted: number; updated: number; removed: number; queried: number; commands: number; connections: number; storageBytes: number; freeBytes: number; residentBytes: number; cpuPercent: number }

function Course(p: { status?: Status; lag: number }) {
  const past = useLoad('past', s => all('local', { find: 'ebb_history', filter: { at: { $gt: new Date(serverNow() - day) } }, sort: { $natural: 1 }, batchSize: 1441 }, 1500, s) as Promise<Past[]>, 30_000)
  const h = past.data ?? []
  const at = useMemo(() => h.map(x => x.at / 1000), [past.data])
  const deleted = useMemo(() => h.map(x => x.seconds > 0 ? x.deleted / x.seconds * 60 : 0), [past.data])
  const lags = useMemo(() => h.map(x => x.lagMillis), [past.data])
  const total = h.reduce((n, x) => n + x.deleted, 0)
  const worst = h.reduce<Past | null>((a, x) => a === null || x.lagMillis > a.lagMillis ? x : a, null)
  const held = p.status ? heldUp(p.status) : []
  const hours = h.length > 0 ? Math.min(24, (serverNow() - h[0].at) / hour) : 0
  const spell = hours >= 23 ? 'the last 24 hours' : hours > 1.5 ? `the last ${Math.round(hours)} hours` : 'the last hour'
  return <div class="grid c3">
    <Panel title={h.length ? `Went in ${spell}` : 'Went'}>
      <div class="num">{past.data || past.fault ? count(h.length ? total : p.status?.monitor?.deletedDocuments ?? 0) : <Bone w="90px" h={24} />} <small>{h.length ? 'documents' : 'documents since the start'}</small></div>
      {h.length > 1 ? <Spark at={at} values={deleted} label={`Documents that went a minute, over ${spell}; ${exact(total)} in all`} format={n => `${count(n)} a minute`} /> : <Empty fault={past.fault} />}
    </Panel>
    <Panel title="Lag behind the deadline">
      <div class="num">{p.status ? p.lag > 0 ? span(p.lag) : 'none' : <Bone w="90px" h={24} />} <small>{worst && worst.lagMillis > 0 ? `now; worst ${span(worst.lagMillis)} at ${moment(worst.at, serverNow())}` : 'now'}</small></div>
      {h.length > 1 ? <Spark at={at} values={lags} max={100} color={p.lag > behindMillis ? '--late-bar' : '--water-bar'} label={`Lag over ${spell}`} format={span} /> : <Empty fault={past.fault} />}
    </Panel>
    <Panel title="Held up">
      {held.length === 0 ? <p class="muted">{p.status ? 'Nothing. No collection is paused, no rule fails.' : <Bone />}</p> : <ul class="rules">{held.slice(0, 4).map(x => <li key={x.key}><Badge tone={x.badge[0]}>{x.badge[1]}</Badge><span style={{ minWidth: 0 }}><a href={collection(x.ns, 'expiry')}>{x.ns}</a><br /><span class="faint">{x.text}</span></span></li>)}</ul>}
      {held.length > 4 && <p class="faint" style={{ marginTop: '8px' }}>and {held.length - 4} more</p>}
    </Panel>
  </div>
}

const Empty = (p: { fault: string }) => <p class="faint" style={{ height: '64px', marginTop: '10px' }}>{p.fault ? 'The last hours cannot be read here.' : 'Of the time before there are no figures yet.'}</p>

// ---- how the server is ----

interface Sample { at: number; ops: number; reads: number; micros: number }

function Load() {
  const [course, setCourse] = useState<{ at: number[]; ops: (number | null)[]; latency: (number | null)[]; memory: number[]; last: Sample | null }>({ at: [], ops: [], latency: [], memory: [], last: null })
  const server = useLoad('load', async signal => {
    const s = await run('admin', { serverStatus: 1, metrics: 0, wiredTiger: 0 }, signal)
    const o = s.opcounters ?? {}
    const sample: Sample = { at: serverNow(), ops: ['insert', 'query', 'update', 'delete', 'getmore', 'command'].reduce((n, k) => n + (o[k] ?? 0), 0), reads: s.opLatencies?.reads?.ops ?? 0, micros: s.opLatencies?.reads?.latency ?? 0 }
    setCourse(c => {
      const keep = 240, cut = <T,>(a: T[], x: T) => [...a, x].slice(-keep)
      const seconds = c.last ? (sample.at - c.last.at) / 1000 : 0
      const reads = c.last ? sample.reads - c.last.reads : 0
      return {
        at: cut(c.at, sample.at / 1000), ops: cut(c.ops, c.last && seconds > 0 ? Math.max(0, (sample.ops - c.last.ops) / seconds) : null),
        latency: cut(c.latency, reads > 0 ? (sample.micros - c.last!.micros) / reads / 1000 : c.last ? 0 : null), memory: cut(c.memory, (s.mem?.resident ?? 0) * 2 ** 20), last: sample,
      }
    })
    return s
  }, 2000)
  const disk = useLoad('disk', s => run('admin', { dbStats: 1 }, s), 30_000)
  const s = server.data
  const ops = course.ops.at(-1) ?? 0, latency = course.latency.at(-1) ?? 0
  const used = disk.data?.fsUsedSize, total = disk.data?.fsTotalSize
  return <>
    <div class="grid c4">
      <Panel title="Operations"><div class="num">{s ? count(Math.round(ops)) : <Bone w="70px" h={24} />} <small>a second, {s ? many(s.connections?.current ?? 0, 'connection') : ''}</small></div>
        <Spark low at={course.at} values={course.ops} label={`${count(ops)} operations a second`} format={n => `${count(Math.round(n))} a second`} max={5} /></Panel>
      <Panel title="A read takes"><div class="num">{s ? latency > 0 ? latency < 1 ? `${latency.toFixed(2)} ms` : span(latency) : '–' : <Bone w="70px" h={24} />} <small>on average, just now</small></div>
        <Spark low at={course.at} values={course.latency} label="Average time of a read" format={n => `${n.toFixed(2)} ms`} max={.5} /></Panel>
      <Panel title="Memory"><div class="num">{s ? bytes((s.mem?.resident ?? 0) * 2 ** 20) : <Bone w="70px" h={24} />} <small>of the machine's</small></div>
        <Spark low at={course.at} values={course.memory} label="Memory of the server" format={bytes} /></Panel>
      <Panel title="Disk"><div class="num">{total ? bytes(total - used) : disk.fault ? '–' : <Bone w="70px" h={24} />} <small>{total ? `free of ${bytes(total)}` : ''}</small></div>
        {total && <div class="share" style={{ height: '10px', borderRadius: '5px', marginTop: '18px' }} role="img" aria-label={`${Math.round(used / total * 100)} % of the disk are used`}><i style={{ width: `${used / total * 100}%`, background: used / total > .9 ? 'var(--late-bar)' : used / total > .75 ? 'var(--soon-bar)' : 'var(--water-bar)' }} /></div>}</Panel>
    </div>
    <Fault text={server.fault} />
  </>
}
