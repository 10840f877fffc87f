// The tide: what goes, and when; what holds it up; how the server is.
import { signal } from '@preact/signals'
import { useMemo, useRef, useState } from 'preact/hooks'
import { all, now as serverNow, run, words } from '../api'
import { behindMillis, ruleName, ruleState, ruleWords, statusOfAll, tideForecast, type Forecast, type Rule, type Status } from '../expiry'
import { collection, place, setQuery } from '../router'
import { useLoad } from '../store'
import { bytes, count, day, exact, hour, iso, many, minute, moment, Number_, plural, span } from '../time'
import { Badge, Bone, Fault, Panel, Release, say, Segments, tipFor } from '../parts/ui'
import { Spark } from '../parts/charts'

/** The columns of the tide: up to when each goes from now; it begins where the one before ends. */
const columns: [string, number][] = [['1 min', minute], ['1 h', hour], ['6 h', 6 * hour], ['1 day', day], ['1 week', 7 * day], ['1 month', 30 * day], ['1 year', 365 * day]]

interface Row { ns: string; rule: Rule; cells: (number | null)[]; later: number | null; never: number | null; late: number; exact: boolean; at: number }

/** What a forecast with the tide's columns as its stretches says of each rule. */
function rowsOf(rules: Rule[], tide: any): Row[] {
  const found = new Map<string, Forecast>()
  for (const c of tide?.collections ?? []) for (const i of c.indexes) found.set(`${c.ns} ${ruleName(i)}`, i)
  return rules.filter(r => !r.inert).map(r => {
    const f = found.get(`${r.ns} ${ruleName(r)}`)
    const cells = f?.buckets ? f.buckets.map(b => b.count) : columns.map(() => null)
    return { ns: r.ns, rule: r, cells, later: f?.later ?? null, never: f?.never ?? null, late: r.backlog ?? 0, exact: f?.exact ?? true, at: tide?.now ?? serverNow() }
  })
}

const soonest = (r: Row) => {
  if (r.late > 0) return -1
  const i = r.cells.findIndex(n => n !== null && n > 0)
  return i >= 0 ? i : r.later ? 90 : 99
}

const maxRows = 60

export function Home() {
  const st = useLoad('tide', s => statusOfAll(s), 3000)
  const tide = useLoad('tide.all', s => tideForecast(columns.map(c => c[1]), s), 10_000, 40)
  const before = usePast()
  const text = place.value.query.get('q') ?? ''
  const show = Number(place.value.query.get('rows') ?? maxRows)
  const rows = useMemo(() => st.data ? rowsOf(st.data.indexes, tide.data) : [], [st.data, tide.data])
  const found = rows.filter(r => r.ns.toLowerCase().includes(text.toLowerCase())).sort((a, b) => soonest(a) - soonest(b) || a.ns.localeCompare(b.ns))
  const nextHour = rows.reduce((n, r) => n + (r.cells[0] ?? 0) + (r.cells[1] ?? 0), 0)
  const lag = st.data ? Math.max(0, ...st.data.indexes.filter(r => !r.paused).map(r => r.lagMillis ?? 0)) : 0
  return <>
    <h1>{st.data ? verdict(st.data) : st.fault ? 'What expires cannot be read.' : <Bone w="420px" h={26} />}</h1>
    <p class="lead">{st.data ? lead(st.data, tide.data ? nextHour : null, lag) : st.fault ? '' : <Bone w="600px" />}</p>
    <Fault text={st.fault} />
    {st.data && <Held status={st.data} onDone={st.again} />}
    <Panel title="What goes, and when" aside={<>{rows.length > 8 && <input type="search" aria-label="Show only collections called" placeholder="Filter" size={16} style={{ padding: '2px 9px' }} value={text} onInput={e => setQuery({ q: e.currentTarget.value })} />}
      <span class="faint">documents by deadline; a click opens them</span></>}>
      {st.data && rows.length === 0 ? <Nothing /> : <Tide rows={found.slice(0, show)} held={st.data?.heldUpBy} loading={!st.data} />}
      {found.length > show && <button class="link" style={{ marginTop: '10px' }} onClick={() => setQuery({ rows: show + 200 })}>{exact(found.length - show)} more {plural(found.length - show, 'rule')}</button>}
      {rows.some(r => !r.exact) && <p class="faint" style={{ marginTop: '10px' }}>Hatched: there is more to count than a forecast walks; what is later may be more than it says.</p>}
      {tide.data?.truncated && <p class="faint" style={{ marginTop: '10px' }}>There are more rules than one reply has room for.</p>}
    </Panel>
    <Course status={st.data} lag={lag} past={before} onDone={st.again} />
    <Load past={before} />
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
  if (s.hold) parts.push(`The clock of expiry stands still at ${moment(s.hold.at, s.now)}. When you have looked, release it.`)
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

function heldUp(s: Status): { key: string; badge: [Parameters<typeof Badge>[0]['tone'], string]; ns: string; text: string; paused?: true }[] {
  const out: ReturnType<typeof heldUp> = []
  const paused = new Set<string>()
  for (const r of s.indexes) {
    if (r.paused && !paused.has(r.ns)) {
      paused.add(r.ns)
      const wait = s.indexes.filter(o => o.ns === r.ns).reduce((n, o) => n + (o.backlog ?? 0), 0)
      out.push({ key: r.ns + 'p', badge: ['held', 'paused'], ns: r.ns, paused: true, text: wait > 0 ? `${many(wait, 'document')} ${wait === 1 ? 'waits' : 'wait'}` : 'nothing waits yet' })
    }
    if (r.inert) out.push({ key: r.ns + r.index + 'i', badge: ['late', 'does nothing'], ns: r.ns, text: `${r.index}: ${r.inert}` })
    if (r.lastError) out.push({ key: r.ns + ruleName(r) + 'e', badge: ['late', 'failed'], ns: r.ns, text: r.lastError })
    if (r.graceUntil && (r.backlog ?? 0) > 0) out.push({ key: r.ns + ruleName(r) + 'g', badge: ['soon', 'waits'], ns: r.ns, text: `${many(r.backlog!, 'document')} until ${moment(r.graceUntil, s.now)}, since the rule has changed` })
    if (r.modifiedInFuture) out.push({ key: r.ns + ruleName(r) + 'f', badge: ['soon', 'clock'], ns: r.ns, text: `${many(r.modifiedInFuture, 'document')} changed while the clock was ahead: they live longer by that` })
  }
  return out
}

/** How many documents wait to be deleted. */
const waiting = (s: Status, ns?: string) => s.indexes.filter(r => ns === undefined ? !r.paused : r.ns === ns).reduce((n, r) => n + (r.backlog ?? 0), 0)

/** Expiry that is held as a whole, and the way to let it go on: what that deletes is said, and its number typed. */
function Held(p: { status: Status; onDone: () => void }) {
  const [asking, ask] = useState(false)
  const s = p.status
  const off = !s.hold && /ttlMonitorEnabled/.test(s.heldUpBy ?? '')
  if (!s.hold && !off) return null
  const n = waiting(s), more = s.indexes.some(r => r.backlogIsMore)
  const release = async () => {
    try {
      await run('admin', off ? { setParameter: 1, ttlMonitorEnabled: true } : { setParameter: 1, ttlHold: 'release' })
      say('Expiry goes on')
    } catch (e) { say(words(e), true) }
    ask(false)
    p.onDone()
  }
  return <><div class="note held bar"><span class="grow">{off ? <><code>ttlMonitorEnabled</code> is false.</> : <>What has expired after {moment(s.hold!.at, s.now)} can still be read, lengthened and copied.</>} {n > 0 ? `With the release ${n === 1 ? 'one document goes' : `${count(n)}${more ? ' and more' : ''} go`}.` : 'Nothing waits.'}</span>
    <button class="btn" onClick={() => ask(true)}>{off ? 'Switch on…' : 'Release…'}</button></div>
    {asking && <Release title={off ? 'Switch expiry on again' : 'Release expiry'} n={n} more={more} onConfirm={release} onClose={() => ask(false)} />}</>
}

// ---- the last hours, as the server has kept them ----

/** A document of local.ebb_history: a minute, as a rule. */
interface Past { at: number; seconds: number; deleted?: number; lagMillis?: number; backlog?: number; inserted: number; updated: number; removed: number; queried: number; commands: number; reads?: number; readMicros?: number
  connections: number; storageBytes: number; freeBytes: number; residentBytes: number; cpuPercent?: number }

const reaches: [string, string, number][] = [['1h', '1 h', hour], ['6h', '6 h', 6 * hour], ['24h', '24 h', day]]

/** What was read of the history: it outlives the screen, so that only what is new has to be read again. */
const past = signal<Past[] | null>(null)

async function readPast(s: AbortSignal): Promise<Past[]> {
  const before = past.peek() ?? []
  const since = Math.max(before.at(-1)?.at ?? 0, serverNow() - day)
  const fresh: Past[] = await all('local', { find: 'ebb_history', filter: { at: { $gt: new Date(since) } }, sort: { $natural: 1 }, batchSize: 1441 }, 1500, s)
  past.value = [...before.filter(x => x.at > serverNow() - day), ...fresh]
  return past.value
}

/** A line with a gap wherever the server was not there. */
function line(h: Past[], of: (p: Past) => number | undefined): { at: number[]; values: (number | null)[] } {
  const at: number[] = [], values: (number | null)[] = []
  h.forEach((p, i) => {
    if (i > 0 && p.at - h[i - 1].at > 1500 * Math.max(p.seconds, 60)) {
      at.push((p.at - p.seconds * 1000) / 1000)
      values.push(null)
    }
    at.push(p.at / 1000)
    values.push(of(p) ?? null)
  })
  return { at, values }
}

const reachOf = () => reaches.find(r => r[0] === place.value.query.get('past')) ?? reaches[2]

function usePast() {
  const r = useLoad('past', readPast, 60_000)
  const reach = reachOf()
  const h = useMemo(() => (past.value ?? []).filter(x => x.at > serverNow() - reach[2]), [past.value, reach])
  return { h, reach, fault: r.fault, there: !!r.data || !!r.fault }
}

type Before = ReturnType<typeof usePast>

function Course(p: { status?: Status; lag: number; past: Before; onDone: () => void }) {
  const { h, reach, fault, there } = p.past
  const deleted = useMemo(() => line(h, x => x.seconds > 0 ? (x.deleted ?? 0) / x.seconds * 60 : 0), [h])
  const lags = useMemo(() => line(h, x => x.lagMillis), [h])
  const backlogs = useMemo(() => line(h, x => x.backlog), [h])
  const total = h.reduce((n, x) => n + (x.deleted ?? 0), 0)
  const top = (of: (x: Past) => number) => h.reduce<Past | null>((a, x) => a === null || of(x) > of(a) ? x : a, null)
  const worst = top(x => x.lagMillis ?? 0), fullest = top(x => x.backlog ?? 0)
  const back = p.status ? waiting(p.status) : 0
  const hours = h.length > 0 ? (serverNow() - h[0].at) / hour : 0
  const spell = hours > reach[2] / hour * .95 ? `the last ${reach[1].replace(' h', reach[0] === '1h' ? ' hour' : ' hours')}` : hours > 1.5 ? `the last ${Math.round(hours)} hours` : `the last ${Math.max(1, Math.round(hours * 60))} min`
  const chart = h.length > 1
  return <>
    <div class="bar" style={{ margin: '22px 0 10px' }}><h2 class="grow">The last hours</h2><Segments small label="How far back" value={reach[0]} options={reaches.map(([k, t]) => [k, t])} onChange={v => setQuery({ past: v })} /></div>
    <div class="grid c4 past">
      <Panel title="Went">
        <div class="num">{there ? count(chart ? total : p.status?.monitor?.deletedDocuments ?? 0) : <Bone w="90px" h={24} />} <small>{chart ? `in ${spell}` : 'since the start'}</small></div>
        {chart ? <Spark {...deleted} label={`Documents that went a minute, over ${spell}; ${exact(total)} in all`} format={n => `${count(n)} a minute`} /> : <Empty fault={fault} />}
      </Panel>
      <Panel title="Lag">
        <div class="num">{p.status ? p.lag > 0 ? span(p.lag) : 'none' : <Bone w="90px" h={24} />} <small title={worst?.lagMillis ? iso(worst.at) : ''}>{worst?.lagMillis ? `worst ${span(worst.lagMillis)}` : 'now'}</small></div>
        {chart ? <Spark {...lags} max={100} color={p.status?.heldUpBy ? '--soon-bar' : p.lag > behindMillis ? '--late-bar' : '--water-bar'} label={`Lag over ${spell}`} format={span} /> : <Empty fault={fault} />}
      </Panel>
      <Panel title="Backlog">
        <div class="num">{p.status ? count(back) : <Bone w="90px" h={24} />} <small title={fullest?.backlog ? iso(fullest.at) : ''}>{fullest?.backlog ? `most ${count(fullest.backlog)}` : 'now'}</small></div>
        {chart ? <Spark {...backlogs} max={10} color="--soon-bar" label={`Documents past their deadline, over ${spell}`} format={n => many(n, 'document')} /> : <Empty fault={fault} />}
      </Panel>
      <HeldUp status={p.status} onDone={p.onDone} />
    </div>
  </>
}

function HeldUp(p: { status?: Status; onDone: () => void }) {
  const held = p.status ? heldUp(p.status) : []
  const [resuming, resume] = useState('')
  const go = async () => {
    const [db, coll] = [resuming.slice(0, resuming.indexOf('.')), resuming.slice(resuming.indexOf('.') + 1)]
    try {
      await run(db, { collMod: coll, ttlPaused: false })
      say(`Deleting goes on in ${resuming}`)
    } catch (e) { say(words(e), true) }
    resume('')
    p.onDone()
  }
  return <Panel title="Held up">
    {held.length === 0 ? <p class="muted">{p.status ? 'Nothing. No collection is paused, no rule fails.' : <Bone />}</p> : <ul class="rules held-up">{held.slice(0, 4).map(x => <li key={x.key}><span style={{ minWidth: 0 }}><Badge tone={x.badge[0]}>{x.badge[1]}</Badge> <a href={collection(x.ns, 'expiry')}>{x.ns}</a><br /><span class="faint">{x.text}</span></span>
      {x.paused && <span class="sp"><button class="btn s" onClick={() => resume(x.ns)} aria-label={`Resume ${x.ns}`}>Resume</button></span>}</li>)}</ul>}
    {held.length > 4 && <p class="faint" style={{ marginTop: '8px' }}>and {held.length - 4} more</p>}
    {resuming && <Release title={`Resume deleting in ${resuming}`} n={waiting(p.status!, resuming)} more={p.status!.indexes.some(r => r.ns === resuming && r.backlogIsMore)} onConfirm={go} onClose={() => resume('')} />}
  </Panel>
}

const Empty = (p: { fault: string }) => <p class="faint" style={{ height: '64px', marginTop: '10px' }}>{p.fault ? 'The last hours cannot be read here.' : 'The first figures of the past come after a minute.'}</p>

// ---- how the server is ----

interface Sample { at: number; ops: number; reads: number; micros: number; cpu: number }

/** What was seen since the page was opened, finer than what the server keeps. */
interface Live { at: number; ops: number; latency: number | null; cpu: number; memory: number }

const keepLive = 120

function Load(p: { past: Before }) {
  const { h } = p.past
  const [live, setLive] = useState<Live[]>([])
  const last = useRef<Sample | null>(null)
  const server = useLoad('load', async signal => {
    const s = await run('admin', { serverStatus: 1, metrics: 0, wiredTiger: 0, tcmalloc: 0, locks: 0, repl: 0, pebble: 0, ebbMemory: 0, transactions: 0, batchedDeletes: 0, catalogStats: 0, security: 0, transportSecurity: 0 }, signal)
    const o = s.opcounters ?? {}, x = s.extra_info ?? {}
    const now: Sample = { at: serverNow(), ops: ['insert', 'query', 'update', 'delete', 'getmore', 'command'].reduce((n, k) => n + (o[k] ?? 0), 0), reads: s.opLatencies?.reads?.ops ?? 0, micros: s.opLatencies?.reads?.latency ?? 0, cpu: (x.user_time_us ?? 0) + (x.system_time_us ?? 0) }
    const was = last.current
    last.current = now
    const seconds = was ? (now.at - was.at) / 1000 : 0
    if (was && seconds > 0 && now.ops >= was.ops) {
      const reads = now.reads - was.reads
      const one: Live = { at: now.at, ops: (now.ops - was.ops) / seconds, latency: reads > 0 ? (now.micros - was.micros) / reads / 1000 : null, cpu: (now.cpu - was.cpu) / seconds / 1e4, memory: (s.mem?.resident ?? 0) * 2 ** 20 }
      setLive(l => [...l, one].slice(-keepLive))
    }
    return s
  }, 3000)
  const disk = useLoad('disk', s => run('admin', { dbStats: 1 }, s), 60_000)
  const both = (ofPast: (p: Past) => number | undefined, ofLive: (l: Live) => number | null) => {
    const { at, values } = line(h, ofPast)
    const from = (h.at(-1)?.at ?? 0) / 1000
    const rest = live.filter(l => l.at / 1000 > from)
    return { at: [...at, ...rest.map(l => l.at / 1000)], values: [...values, ...rest.map(ofLive)] }
  }
  const rate = (p: Past) => p.seconds > 0 ? (p.inserted + p.updated + p.removed + p.queried + p.commands) / p.seconds : 0
  const lines = useMemo(() => ({
    ops: both(rate, l => l.ops), latency: both(p => p.reads ? p.readMicros! / p.reads / 1000 : undefined, l => l.latency), cpu: both(p => p.cpuPercent, l => l.cpu), memory: both(p => p.residentBytes, l => l.memory), disk: line(h, p => p.storageBytes),
  }), [h, live])
  const s = server.data, now = live.at(-1)
  const used = disk.data?.fsUsedSize, total = disk.data?.fsTotalSize
  const stored = h.at(-1)?.storageBytes
  const wait = <Bone w="70px" h={24} />
  return <>
    <div class="grid c5">
      <Panel title="Operations"><div class="num">{now ? count(Math.round(now.ops)) : wait} <small>a second</small></div>
        <Spark low {...lines.ops} label={`${count(now?.ops ?? 0)} operations a second`} format={n => `${count(Math.round(n))} a second`} max={5} /><p class="faint">{s ? many(s.connections?.current ?? 0, 'connection') : <Bone w="90px" h={10} />}</p></Panel>
      <Panel title="A read takes"><div class="num">{now ? now.latency ? now.latency < 1 ? `${now.latency.toFixed(2)} ms` : span(now.latency) : '–' : wait}</div>
        <Spark low {...lines.latency} label="Average time of a read" format={n => `${n.toFixed(2)} ms`} max={.5} /><p class="faint">on average</p></Panel>
      <Panel title="Processor"><div class="num">{now ? `${now.cpu < 10 ? now.cpu.toFixed(1) : Math.round(now.cpu)} %` : wait}</div>
        <Spark low {...lines.cpu} label={`${Math.round(now?.cpu ?? 0)} % of one processor`} format={n => `${n.toFixed(1)} % of one processor`} max={5} /><p class="faint">of one processor</p></Panel>
      <Panel title="Memory"><div class="num">{s ? bytes((s.mem?.resident ?? 0) * 2 ** 20) : wait}</div>
        <Spark low {...lines.memory} label="Memory of the server" format={bytes} /><p class="faint">resident</p></Panel>
      <Panel title="Disk"><div class="num">{stored !== undefined ? bytes(stored) : total ? bytes(total - used) : disk.fault ? '–' : wait} <small>{stored === undefined && total ? 'free' : ''}</small></div>
        <Spark low {...lines.disk} label="What the store takes on disk" format={bytes} /><p class={'faint' + (total && used / total > .9 ? ' late' : '')}>{total ? `${bytes(total - used)} of ${bytes(total)} free` : disk.fault ? '' : <Bone w="90px" h={10} />}</p></Panel>
    </div>
    <Fault text={server.fault} />
  </>
}
