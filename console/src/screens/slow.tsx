// What was slow, and what queries of each shape have cost: of the log, the profiler and $queryStats, with how they were or would be run.
import { useMemo, useState } from 'preact/hooks'
import { all, now as serverNow, run, runDoc, words } from '../api'
import { plain, type Doc, type Input, type Value } from '../ejson'
import { collection, place, setQuery } from '../router'
import { collections, useLoad } from '../store'
import { commandShape, exampleOf, statsShape, suggest } from '../shape'
import { count, exact, moment, Number_, plural, span } from '../time'
import { Badge, Bone, Dialog, Fault, Panel, say, Segments } from '../parts/ui'
import { appName, parseLine, Plan, type Bar } from './operations'

/** A query that was slow, as the log or a system.profile has it. */
interface Slow { at: number; ns: string; command: any; typed?: Value; plan: string; millis: number; examined: number; returned: number; hash: string; own: boolean; from: 'log' | 'profile'; whole: any }

interface Shape { key: string; ns: string; text: string; plans: string[]; times: number; worst: number; total: number; typical: number; examined: number; returned: number; last: number; own: boolean; command: any; typed?: Value; whole: any; isExample: boolean; sources: string }

const rateName = 'internalQueryStatsRateLimit'
/** How many profiled operations are read of each database, and of how many databases. */
const profiled = 500, maxProfiles = 50

async function readLog(s: AbortSignal): Promise<{ slow: Slow[]; lines: number; oldest: number | undefined }> {
  const lines = ((await run('admin', { getLog: 'global' }, s)).log as string[]).map(parseLine)
  const slow = lines.filter(l => l.msg === 'Slow query').map(({ t, attr }): Slow => ({
    at: t, ns: attr.ns, command: attr.originatingCommand ?? attr.command, plan: attr.planSummary ?? '', millis: attr.durationMillis ?? 0, examined: Math.max(attr.docsExamined ?? 0, attr.keysExamined ?? 0),
    returned: attr.nreturned ?? attr.nMatched ?? attr.ndeleted ?? 0, hash: attr.queryShapeHash ?? '', own: attr.appName === appName, from: 'log', whole: attr,
  }))
  return { slow, lines: lines.length, oldest: lines.find(l => Number.isFinite(l.t))?.t }
}

async function readProfiles(s: AbortSignal): Promise<Slow[]> {
  const dbs = (collections.peek() ?? []).filter(c => c.name === 'system.profile').slice(0, maxProfiles)
  const found = await Promise.all(dbs.map(async c => {
    const reply = await runDoc(c.db, { find: 'system.profile', filter: { op: { $ne: 'none' } }, sort: { $natural: -1 }, limit: profiled, batchSize: profiled }, s).catch(() => null)
    const docs = reply ? (reply.get('cursor') as Doc).get('firstBatch') as Doc[] : []
    return docs.map(doc => ({ doc, d: plain(doc) as any })).map(({ doc, d }): Slow => ({
      typed: doc.get('originatingCommand') ?? doc.get('command'), at: d.ts, ns: d.ns, command: d.originatingCommand ?? d.command, plan: d.planSummary ?? '', millis: d.millis ?? 0, examined: Math.max(d.docsExamined ?? 0, d.keysExamined ?? 0), returned: d.nreturned ?? d.nMatched ?? d.ndeleted ?? 0,
      hash: d.queryShapeHash ?? '', own: d.appName === appName, from: 'profile', whole: d,
    }))
  }))
  return found.flat()
}

/** What was slow, by shape. An operation that is in the log and in a profile counts once. */
function shapesOf(slow: Slow[]): Shape[] {
  const groups = new Map<string, Slow[]>()
  const inLog = new Set(slow.filter(x => x.from === 'log').map(x => `${x.ns} ${x.at} ${x.millis} ${x.plan}`))
  for (const x of slow) {
    if (x.from === 'profile' && inLog.has(`${x.ns} ${x.at} ${x.millis} ${x.plan}`)) continue
    const key = `${x.ns} ${x.hash || commandShape(x.command)} ${x.plan}`
    const g = groups.get(key)
    if (g) g.push(x)
    else groups.set(key, [x])
  }
  return [...groups].map(([key, g]) => {
    const millis = g.map(x => x.millis).sort((a, b) => a - b), sum = (f: (x: Slow) => number) => g.reduce((n, x) => n + f(x), 0)
    const last = g.reduce((a, b) => a.at > b.at ? a : b)
    return {
      key, ns: last.ns, text: commandShape(last.command) || 'command', plans: last.plan ? [last.plan] : [], times: g.length, worst: millis[millis.length - 1], total: sum(x => x.millis), typical: millis[Math.min(millis.length - 1, Math.floor(millis.length * .99))],
      examined: sum(x => x.examined), returned: sum(x => x.returned), last: last.at, own: g.every(x => x.own), command: last.command, typed: last.typed, whole: last.whole, isExample: true, sources: [...new Set(g.map(x => x.from))].join(' and '),
    }
  }).sort((a, b) => b.total - a.total)
}

/** What $queryStats has, with the plans of those of each shape that the log or a profile tells of. */
function countedOf(stats: any[], slow: Slow[]): Shape[] {
  const known = new Map<string, Slow[]>()
  for (const x of slow) if (x.hash) known.set(x.hash, [...(known.get(x.hash) ?? []), x])
  const shapes = new Map<string, Shape>()
  for (const d of stats) {
    const q = d.key?.queryShape ?? {}, ns = `${q.cmdNs?.db}.${q.cmdNs?.coll}`, m = d.metrics ?? {}
    const own = d.key?.client?.application?.name === appName
    const key = `${d.queryShapeHash} ${own}`
    const seen = known.get(d.queryShapeHash) ?? []
    const s: Shape = shapes.get(key) ?? { key, ns, text: statsShape(q), plans: [...new Set(seen.map(x => x.plan).filter(Boolean))], times: 0, worst: 0, total: 0, typical: 0, examined: 0, returned: 0, last: 0, own, command: seen[0]?.command ?? exampleOf(q), typed: seen[0]?.typed, whole: d, isExample: seen.length > 0, sources: '$queryStats' }
    s.times += m.execCount ?? 0
    s.total += (m.totalExecMicros?.sum ?? 0) / 1000
    s.worst = Math.max(s.worst, (m.totalExecMicros?.max ?? 0) / 1000)
    s.examined += Math.max(m.docsExamined?.sum ?? 0, m.keysExamined?.sum ?? 0)
    s.returned += m.docsReturned?.sum ?? 0
    if ((m.latestSeenTimestamp ?? 0) >= s.last) [s.last, s.whole] = [m.latestSeenTimestamp ?? 0, d]
    s.typical = s.times > 0 ? s.total / s.times : 0
    shapes.set(key, s)
  }
  return [...shapes.values()].sort((a, b) => b.total - a.total)
}

export function SlowQueries({ bar }: Bar) {
  const q = place.value.query
  const counting = q.get('of') === 'all', own = q.get('own') === '1'
  const log = useLoad('slow', readLog, 5000)
  const profiles = useLoad(`slow.profiles ${collections.value?.filter(c => c.name === 'system.profile').length}`, readProfiles, 10_000)
  const stats = useLoad('slow.stats', s => all('admin', { aggregate: 1, pipeline: [{ $queryStats: {} }], cursor: { batchSize: 5000 } }, 5000, s), counting ? 5000 : 0)
  const rate = useLoad('slow.rate', async s => (await run('admin', { getParameter: 1, [rateName]: 1 }, s))[rateName] as number)
  const level = useLoad('slow.level', s => run('admin', { profile: -1 }, s))
  const [open, setOpen] = useState<Shape | null>(null)
  const slow = useMemo(() => [...(log.data?.slow ?? []), ...(profiles.data ?? [])], [log.data, profiles.data])
  const shapes = useMemo(() => (counting ? countedOf(stats.data ?? [], slow) : shapesOf(slow)).filter(x => own || !x.own), [counting, stats.data, slow, own])
  const scans = shapes.filter(x => x.plans.some(p => /COLLSCAN/.test(p)) && x.examined > 1000)
  const ready = counting ? stats.data : log.data, fault = counting ? stats.fault || rate.fault : log.fault
  const set = async (what: Promise<unknown>, done: string) => {
    try {
      await what
      say(done)
      level.again()
      rate.again()
      stats.again()
    } catch (e) { say(words(e), true) }
  }
  const setSlow = (ms: number) => set(run('admin', { profile: -1, slowms: ms }), `What takes longer than ${exact(ms)} ms counts as slow`)
  const setRate = (n: number) => set(run('admin', { setParameter: 1, [rateName]: n }), n === 0 ? 'Queries are not counted any more' : n < 0 ? 'All queries are counted' : `Up to ${exact(n)} queries a second are counted`)
  return <>
    <h1>{!ready ? fault ? 'What was slow cannot be read.' : <Bone w="360px" h={26} /> : shapes.length === 0 ? counting ? 'No query was counted.' : 'Nothing was slow.' : scans.length ? `${Number_(scans.length)} ${counting ? '' : 'slow '}${plural(scans.length, 'shape reads', 'shapes read')} whole collections.` : `${Number_(shapes.length)} ${plural(shapes.length, 'shape was', 'shapes were')} ${counting ? 'asked' : 'slow'}.`}</h1>
    <p class="lead">{!ready ? <Bone w="320px" /> : counting ? 'Of all queries that were counted ($queryStats), by their shape and how much time they took together.' : `Of the last ${exact(log.data?.lines ?? 0)} lines of the log${log.data?.oldest ? `, since ${moment(log.data.oldest, serverNow())}` : ''}${profiles.data?.length ? `, and ${exact(profiles.data.length)} operations that were profiled` : ''}.`}</p>
    {bar}<Fault text={fault} />
    <div class="bar"><Segments label="Which queries" value={counting ? 'all' : 'slow'} options={[['slow', 'Slow ones'], ['all', 'All shapes']]} onChange={v => setQuery({ of: v === 'all' ? 'all' : undefined })} />
      {counting ? rate.data !== undefined && <span class="bar faint" style={{ margin: 0 }}>counted <Segments small label="How many queries are counted" value={String(rate.data)} options={[...new Set([0, 100, 1000, -1, rate.data])].sort((a, b) => (a < 0 ? 1e12 : a) - (b < 0 ? 1e12 : b)).map(n => [String(n), n === 0 ? 'none' : n < 0 ? 'all' : `${exact(n)} a second`])} onChange={v => void setRate(Number(v))} /></span>
        : level.data && <span class="bar faint" style={{ margin: 0 }}>slow is longer than <Segments small label="Slow is longer than" value={String(level.data.slowms)} options={[...new Set([10, 50, 100, 500, 1000, level.data.slowms as number])].sort((a, b) => a - b).map(n => [String(n), `${n} ms`])} onChange={v => void setSlow(Number(v))} /></span>}
      <span class="grow" /><label class="check faint"><input type="checkbox" checked={own} onChange={e => setQuery({ own: e.currentTarget.checked ? 1 : undefined })} />the console’s own, too</label></div>
    <Panel class="flush hover">
      {shapes.length === 0 ? <p class="empty">{!ready ? 'Reading…' : counting && rate.data === 0 ? 'Queries are counted by their shapes when it is asked for, above: it costs a little of each.' : 'None.'}</p> : <div class="scroll"><table class="shapes"><thead><tr><th>shape</th><th>plan</th><th class="r">times</th><th class="r">{counting ? 'on average' : 'p99'}</th><th class="r">in all</th><th class="r">read ÷ returned</th><th>last</th><th><span class="sr">actions</span></th></tr></thead><tbody>{shapes.slice(0, 100).map(x => {
        const index = x.plans.some(p => /COLLSCAN/.test(p)) || x.examined > 50 * Math.max(1, x.returned) ? suggest(x.command) : null
        return <tr key={x.key}><td><b class="ns">{x.ns}</b> {x.own && <span class="faint">by the console</span>}<br /><code>{x.text.slice(0, 300)}</code></td><td>{x.plans.length ? x.plans.slice(0, 3).map(p => <Plan key={p} text={p} />) : <span class="faint">–</span>}</td><td class="r">{exact(x.times)}</td><td class="r" title={`worst ${span(x.worst)}`}>{span(x.typical)}</td><td class="r">{span(x.total)}</td>
          <td class="r" title={`${exact(x.examined)} read, ${exact(x.returned)} returned`}>{x.returned > 0 ? count(x.examined / x.returned) : x.examined > 0 ? `${count(x.examined)} ÷ 0` : '–'}</td><td class="nowrap muted">{moment(x.last, serverNow())}</td>
          <td class="r"><div class="acts">{index && x.ns.includes('.') && !x.ns.endsWith('.$cmd') && <a class="btn s" href={collection(x.ns, 'indexes', { make: index })} title={`An index ${index} would serve it`}>Index…</a>}<button class="btn s" onClick={() => setOpen(x)} aria-label={`Plan of ${x.text.slice(0, 60)}`}>Plan</button></div></td></tr>
      })}</tbody></table></div>}
    </Panel>
    {shapes.length > 100 && <p class="faint">The first 100 of {exact(shapes.length)}, by the time that they took.</p>}
    {open && <Details of={open} onClose={() => setOpen(null)} />}
  </>
}

/** What of a command matters to its plan. */
const explained = new Set(['find', 'aggregate', 'distinct', 'count', 'filter', 'query', 'pipeline', 'key', 'sort', 'projection', 'limit', 'skip', 'hint', 'min', 'max', 'collation', 'let'])

/** Commands that are explained, as far as that takes no more than what a query is. */
const explains = (c: any) => typeof c === 'object' && c !== null && ['find', 'aggregate', 'distinct', 'count'].includes(Object.keys(c)[0])

/** How one of the shape is planned now, and all that is known of the last one. */
function Details(p: { of: Shape; onClose: () => void }) {
  const { command, ns } = p.of
  const plan = useLoad(`explain ${p.of.key}`, async s => {
    if (!explains(command)) return null
    const fields: [string, Input][] = p.of.typed instanceof Map ? [...p.of.typed] : Object.entries(command)
    const asked: { [key: string]: Input } = Object.fromEntries(fields.filter(([k]) => explained.has(k)))
    return run(ns.slice(0, ns.indexOf('.')), { explain: 'aggregate' in asked ? { ...asked, cursor: {} } : asked, verbosity: 'queryPlanner', maxTimeMS: 5000 }, s)
  })
  const winning = plan.data?.queryPlanner?.winningPlan ?? plan.data?.stages?.[0]?.$cursor?.queryPlanner?.winningPlan
  const steps = winning ? stepsOf(winning) : []
  return <Dialog big title="How it is run" onClose={p.onClose}>
    <p><b>{ns}</b> <code>{p.of.text}</code></p>
    {!explains(command) ? null : plan.fault ? <p class="muted">It is not explained: {plan.fault}</p> : !plan.data ? <Bone h={60} block /> : <div><h3>{p.of.isExample ? 'As the last one would be run now' : 'As one with other values would be run now'}</h3>
      <ol class="plan">{steps.map((s, i) => <li key={i}><Badge tone={s.stage === 'COLLSCAN' ? 'late' : /SCAN|IDHACK|EXPRESS|COUNT|DISTINCT/.test(s.stage) ? 'water' : ''}>{s.stage}</Badge> <span class="mono faint">{s.text}</span></li>)}</ol></div>}
    <div><h3>{p.of.sources === '$queryStats' ? 'What it has cost' : 'The last one, as it was noted'}</h3><div style={{ maxHeight: '38vh', overflow: 'auto' }} tabIndex={0} role="region" aria-label="What is known of it"><pre>{JSON.stringify(p.of.sources === '$queryStats' ? p.of.whole.metrics : p.of.whole, null, 2)}</pre></div></div>
    <div class="bar"><button class="btn" onClick={p.onClose}>Close</button></div></Dialog>
}

/** The stages of a plan, from the documents' side up. */
function stepsOf(plan: any, depth = 0): { stage: string; text: string }[] {
  if (!plan || depth > 20) return []
  const below = [plan.inputStage, ...(plan.inputStages ?? []), plan.queryPlan].filter(Boolean).flatMap((x: any) => stepsOf(x, depth + 1))
  if (!plan.stage) return below
  const parts: string[] = []
  if (plan.indexName) parts.push(`${plan.indexName} ${JSON.stringify(plan.keyPattern ?? {})}`)
  if (plan.indexBounds) parts.push(JSON.stringify(plan.indexBounds).slice(0, 300))
  if (plan.filter) parts.push('filter ' + JSON.stringify(plan.filter).slice(0, 300))
  if (plan.sortPattern) parts.push('sort ' + JSON.stringify(plan.sortPattern))
  return [...below, { stage: plan.stage, text: parts.join(' · ') }]
}
