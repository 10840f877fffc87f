// What the server is doing, what was slow, who is connected, and what the log says.
import { useMemo, useState } from 'preact/hooks'
import { all, now as serverNow, run, words } from '../api'
import { collection, place, setQuery } from '../router'
import { useLoad } from '../store'
import { commandShape, suggest } from '../shape'
import { count, exact, moment, Number_, plural, span } from '../time'
import { Badge, Bone, Dialog, Fault, Panel, say, Segments, Tabs } from '../parts/ui'

const appName = 'Ebb console'

export function Operations(p: { tab: string }) {
  const bar = <Tabs label="Operations" at={p.tab} tabs={[['running', 'Running', '#/operations/running'], ['slow', 'Slow queries', '#/operations/slow'], ['connections', 'Connections', '#/operations/connections'], ['log', 'Log', '#/operations/log']]} />
  switch (p.tab) {
    case 'slow': return <Slow bar={bar} />
    case 'connections': return <Connections bar={bar} />
    case 'log': return <Log bar={bar} />
  }
  return <Running bar={bar} />
}

type Bar = { bar: preact.JSX.Element }
interface Op { opid: number | string; desc: string; op: string; ns: string; command?: any; client?: string; appName?: string; microsecs_running?: number; active: boolean; planSummary?: string; msg?: string; progress?: { done: number; total: number }; waitingForLock?: boolean; connectionId?: number; effectiveUsers?: { user: string; db: string }[]; clientMetadata?: any; currentOpTime?: string }

const currentOps = (idle: boolean, s: AbortSignal): Promise<Op[]> => all('admin', { aggregate: 1, pipeline: [{ $currentOp: { allUsers: true, idleConnections: idle, localOps: true } }], cursor: { batchSize: 1000 } }, 5000, s)

/** Operations that wait for news, as drivers' monitors do, are not long for that. */
const waits = (o: Op) => o.command !== undefined && ('hello' in o.command || 'isMaster' in o.command || 'ismaster' in o.command || 'awaitData' in o.command || 'getMore' in o.command && 'maxTimeMS' in o.command)
const isOwn = (o: Op) => o.appName === appName
const client = (o: Op) => [o.effectiveUsers?.[0]?.user, o.appName, o.client?.replace(/:\d+$/, '')].filter(Boolean).join(' · ')

function Running({ bar }: Bar) {
  const own = place.value.query.get('own') === '1'
  const ops = useLoad('ops', s => currentOps(false, s), 1000)
  const server = useLoad('ops.server', s => run('admin', { serverStatus: 1 }, s), 3000)
  const [ending, end] = useState<Op | null>(null)
  const list = (ops.data ?? []).filter(o => o.active && (own || !isOwn(o) && !waits(o))).sort((a, b) => (b.microsecs_running ?? 0) - (a.microsecs_running ?? 0))
  const long = list.filter(o => (o.microsecs_running ?? 0) > 1e6 && o.desc !== 'TTLMonitor' && !waits(o))
  const s = server.data
  const kill = async (o: Op) => {
    end(null)
    try {
      await run('admin', { killOp: 1, op: o.opid })
      say('It is told to end')
      ops.again()
    } catch (e) { say(words(e), true) }
  }
  return <>
    <h1>{!ops.data ? ops.fault ? 'What runs cannot be read.' : <Bone w="380px" h={26} /> : long.length ? `${Number_(long.length)} ${long.length === 1 ? 'operation has' : 'operations have'} run for more than a second.` : list.length ? 'Quiet. Nothing runs for long.' : 'Quiet. Nothing runs at the moment.'}</h1>
    <p class="lead">{s ? `${exact(s.connections?.current ?? 0)} ${plural(s.connections?.current ?? 0, 'connection')}, ${exact(s.metrics?.cursor?.open?.total ?? 0)} ${plural(s.metrics?.cursor?.open?.total ?? 0, 'cursor waits', 'cursors wait')}${s.globalLock?.currentQueue?.total ? `, ${exact(s.globalLock.currentQueue.total)} wait for their turn` : ''}.` : <Bone w="300px" />}</p>
    {bar}<Fault text={ops.fault} />
    <Panel title="Running now" aside={<label class="check faint"><input type="checkbox" checked={own} onChange={e => setQuery({ own: e.currentTarget.checked ? 1 : undefined })} />the console’s own, and those that wait for news, too</label>}>
      {list.length === 0 ? <p class="empty">{ops.data ? 'Nothing.' : 'Reading…'}</p> : <div class="scroll hover"><table><thead><tr><th>op</th><th>namespace</th><th>what</th><th>plan</th><th>client</th><th class="r">for</th><th><span class="sr">actions</span></th></tr></thead><tbody>{list.map(o => <tr key={String(o.opid)}>
        <td class="nowrap">{o.desc === 'TTLMonitor' ? 'expiry' : o.command ? Object.keys(o.command)[0] ?? o.op : o.op}</td><td>{o.ns}</td>
        <td style={{ maxWidth: '420px' }}>{o.msg ? <>{o.msg}{o.progress && <div class="share" role="img" aria-label={`${exact(o.progress.done)} of ${exact(o.progress.total)}`}><i style={{ width: `${Math.min(100, o.progress.done / Math.max(1, o.progress.total) * 100)}%` }} /></div>}</> : <code>{commandShape(o.command).slice(0, 200) || o.op}</code>} {o.waitingForLock && <Badge tone="soon">waits</Badge>}</td>
        <td>{o.planSummary && <Plan text={o.planSummary} />}</td><td>{o.desc === 'TTLMonitor' ? <Badge tone="water">expiry</Badge> : client(o)}</td><td class="r">{span((o.microsecs_running ?? 0) / 1000)}</td>
        <td class="r">{o.desc !== 'TTLMonitor' && <button class="btn s" onClick={() => end(o)} aria-label={`End operation ${o.opid}`}>End</button>}</td></tr>)}</tbody></table></div>}
    </Panel>
    {ending && <Dialog title={`End operation ${ending.opid}?`} onClose={() => end(null)}><p><code>{commandShape(ending.command) || ending.op}</code> on {ending.ns}. Its client gets an error; what it has done so far as single documents stays.</p>
      <div class="bar"><button class="btn d" onClick={() => void kill(ending)}>End it</button><button class="btn" onClick={() => end(null)}>Let it run</button></div></Dialog>}
  </>
}

const Plan = (p: { text: string }) => <Badge tone={/COLLSCAN/.test(p.text) ? 'late' : /IDHACK|IXSCAN|COUNT|DISTINCT|EXPRESS|CLUSTERED/.test(p.text) ? 'water' : ''} title={p.text}>{p.text.replace(/^IXSCAN \{ (.*) \}$/, 'IXSCAN $1')}</Badge>

// ---- what was slow ----

interface Line { t: number; s: string; c: string; msg: string; attr: any; id?: number; ctx?: string }

function parseLine(text: string): Line {
  try {
    const l = JSON.parse(text)
    return { t: Date.parse(l.t?.$date ?? ''), s: l.s, c: l.c, msg: l.msg, attr: l.attr ?? {}, id: l.id, ctx: l.ctx }
  } catch { return { t: NaN, s: '', c: '', msg: text, attr: {} } }
}

const readLog = async (which: string, s: AbortSignal): Promise<Line[]> => ((await run('admin', { getLog: which }, s)).log as string[]).map(parseLine)

interface Shape { key: string; ns: string; text: string; plan: string; times: number; worst: number; total: number; p99: number; examined: number; returned: number; example: Line; last: number; own: boolean }

function shapesOf(lines: Line[]): Shape[] {
  const groups = new Map<string, { lines: Line[]; text: string; plan: string; ns: string }>()
  for (const l of lines) {
    if (l.msg !== 'Slow query') continue
    const c = l.attr.originatingCommand ?? l.attr.command
    const text = commandShape(c) || l.attr.type, plan = l.attr.planSummary ?? '', ns = l.attr.ns
    const key = `${ns} ${text} ${plan}`
    const g = groups.get(key)
    if (g) g.lines.push(l)
    else groups.set(key, { lines: [l], text, plan, ns })
  }
  return [...groups].map(([key, g]) => {
    const millis = g.lines.map(l => l.attr.durationMillis as number).sort((a, b) => a - b)
    const sum = (f: (l: Line) => number) => g.lines.reduce((n, l) => n + (f(l) || 0), 0)
    return { key, ns: g.ns, text: g.text, plan: g.plan, times: g.lines.length, worst: millis[millis.length - 1], total: sum(l => l.attr.durationMillis), p99: millis[Math.min(millis.length - 1, Math.floor(millis.length * .99))],
      examined: sum(l => Math.max(l.attr.docsExamined ?? 0, l.attr.keysExamined ?? 0)), returned: sum(l => l.attr.nreturned ?? l.attr.nMatched ?? l.attr.ndeleted ?? 0), example: g.lines[g.lines.length - 1], last: Math.max(...g.lines.map(l => l.t)),
      own: g.lines.every(l => l.attr.appName === appName) }
  }).sort((a, b) => b.total - a.total)
}

function Slow({ bar }: Bar) {
  const log = useLoad('slow', s => readLog('global', s), 5000)
  const level = useLoad('slow.level', s => run('admin', { profile: -1 }, s))
  const [open, setOpen] = useState<Shape | null>(null)
  const shapes = useMemo(() => shapesOf(log.data ?? []), [log.data])
  const scans = shapes.filter(x => /COLLSCAN/.test(x.plan) && x.examined > 1000)
  const oldest = log.data?.find(l => Number.isFinite(l.t))?.t
  const setSlow = async (ms: number) => {
    try {
      await run('admin', { profile: -1, slowms: ms })
      say(`What takes longer than ${exact(ms)} ms counts as slow`)
      level.again()
    } catch (e) { say(words(e), true) }
  }
  return <>
    <h1>{!log.data ? log.fault ? 'The log cannot be read.' : <Bone w="360px" h={26} /> : shapes.length === 0 ? 'Nothing was slow.' : scans.length ? `${Number_(scans.length)} slow ${plural(scans.length, 'shape reads', 'shapes read')} whole collections.` : `${Number_(shapes.length)} ${plural(shapes.length, 'shape was', 'shapes were')} slow.`}</h1>
    <p class="lead">{log.data ? `Of the last ${exact(log.data.length)} lines of the log${oldest ? `, since ${moment(oldest, serverNow())}` : ''}.` : <Bone w="320px" />}</p>
    {bar}<Fault text={log.fault} />
    <Panel title="Slow shapes" aside={level.data && <span class="bar faint" style={{ margin: 0 }}>slow is longer than <Segments small label="Slow is longer than" value={String(level.data.slowms)} options={[...new Set([...[10, 50, 100, 500, 1000], level.data.slowms as number])].sort((a, b) => a - b).map(n => [String(n), `${n} ms`])} onChange={v => void setSlow(Number(v))} /></span>}>
      {shapes.length === 0 ? <p class="empty">{log.data ? 'None.' : 'Reading…'}</p> : <div class="scroll hover"><table><thead><tr><th>shape</th><th>plan</th><th class="r">times</th><th class="r">p99</th><th class="r">in all</th><th class="r">read ÷ returned</th><th>last</th><th><span class="sr">actions</span></th></tr></thead><tbody>{shapes.slice(0, 100).map(x => {
        const index = /COLLSCAN/.test(x.plan) || x.examined > 50 * Math.max(1, x.returned) ? suggest(x.example.attr.originatingCommand ?? x.example.attr.command) : null
        return <tr key={x.key}><td style={{ maxWidth: '460px' }}>{x.ns} <code>{x.text.slice(0, 300)}</code>{x.own && <span class="faint"> by the console</span>}</td><td>{x.plan && <Plan text={x.plan} />}</td><td class="r">{exact(x.times)}</td><td class="r" title={`worst ${span(x.worst)}`}>{span(x.p99)}</td><td class="r">{span(x.total)}</td>
          <td class="r" title={`${exact(x.examined)} read, ${exact(x.returned)} returned`}>{x.returned > 0 ? count(x.examined / x.returned) : x.examined > 0 ? `${count(x.examined)} ÷ 0` : '–'}</td><td class="nowrap muted">{moment(x.last, serverNow())}</td>
          <td class="r">{index && x.ns.includes('.') && !x.ns.endsWith('.$cmd') && <a class="btn s" href={collection(x.ns, 'indexes', { make: index })}>Suggest an index</a>} <button class="btn s" onClick={() => setOpen(x)} aria-label={`An example of ${x.text.slice(0, 60)}`}>Example</button></td></tr>
      })}</tbody></table></div>}
    </Panel>
    {open && <Dialog big title="The last one of this shape" onClose={() => setOpen(null)}><div style={{ maxHeight: '60vh', overflow: 'auto' }} tabIndex={0} role="region" aria-label="The line of the log"><pre>{JSON.stringify(open.example.attr, null, 2)}</pre></div><div class="bar"><button class="btn" onClick={() => setOpen(null)}>Close</button></div></Dialog>}
  </>
}

// ---- connections ----

function Connections({ bar }: Bar) {
  const ops = useLoad('connections', s => currentOps(true, s), 3000)
  const list = (ops.data ?? []).filter(o => o.connectionId && !isOwn(o))
  const groups = new Map<string, { app: string; driver: string; host: string; user: string; n: number; active: number }>()
  for (const o of list) {
    const driver = o.clientMetadata?.driver, host = (o.client ?? '').replace(/:\d+$/, '')
    const g = { app: o.appName || '–', driver: driver ? `${driver.name} ${driver.version ?? ''}` : '–', host, user: o.effectiveUsers?.map(u => `${u.user}@${u.db}`).join(', ') || '–', n: 0, active: 0 }
    const key = [g.app, g.driver, g.host, g.user].join('|')
    const at = groups.get(key) ?? g
    at.n++
    if (o.active) at.active++
    groups.set(key, at)
  }
  const active = list.filter(o => o.active).length
  return <>
    <h1>{ops.data ? list.length === 0 ? 'No driver is connected.' : `${list.length === 1 ? 'One connection is' : `${exact(list.length)} connections are`} open${active ? `, ${exact(active)} at work` : ''}.` : ops.fault ? 'The connections cannot be read.' : <Bone w="300px" h={26} />}</h1>
    <p class="lead">By program, driver, machine and user.</p>{bar}<Fault text={ops.fault} />
    <Panel class="flush hover"><div class="scroll"><table><thead><tr><th>program</th><th>driver</th><th>machine</th><th>user</th><th class="r">connections</th><th class="r">at work</th></tr></thead><tbody>{[...groups.values()].sort((a, b) => b.n - a.n).map((g, i) => <tr key={i}><td>{g.app}</td><td class="muted">{g.driver}</td><td>{g.host}</td><td>{g.user}</td><td class="r">{exact(g.n)}</td><td class="r">{exact(g.active)}</td></tr>)}</tbody></table>
      {ops.data && groups.size === 0 && <p class="empty">Nobody but the console.</p>}</div></Panel>
  </>
}

// ---- the log ----

const severities: [string, string][] = [['', 'all'], ['W', 'warnings'], ['E', 'errors']]

function Log({ bar }: Bar) {
  const q = place.value.query
  const which = q.get('of') === 'startup' ? 'startupWarnings' : 'global'
  const log = useLoad('log ' + which, s => readLog(which, s), 3000)
  const severity = q.get('severity') ?? '', component = q.get('component') ?? '', text = q.get('q') ?? ''
  const lines = log.data ?? []
  const components = [...new Set(lines.map(l => l.c).filter(Boolean))].sort()
  const grave = (l: Line) => severity === '' || severity === 'W' && /[WEF]/.test(l.s) || severity === 'E' && /[EF]/.test(l.s)
  const found = lines.filter(l => grave(l) && (!component || l.c === component) && (!text || (l.msg + ' ' + JSON.stringify(l.attr)).toLowerCase().includes(text.toLowerCase()))).reverse()
  const warnings = lines.filter(l => l.s === 'W').length, errors = lines.filter(l => /[EF]/.test(l.s)).length
  return <>
    <h1>{!log.data ? log.fault ? 'The log cannot be read.' : <Bone w="340px" h={26} /> : errors ? `${Number_(errors)} ${plural(errors, 'error')} in the last ${exact(lines.length)} lines.` : warnings ? `No errors, ${exact(warnings)} ${plural(warnings, 'warning')}.` : 'No errors, no warnings.'}</h1>
    <p class="lead">The last lines that the server keeps in memory, newest first.</p>{bar}<Fault text={log.fault} />
    <div class="bar"><Segments label="Which lines" value={q.get('of') ?? 'log'} options={[['log', 'Log'], ['startup', 'Startup warnings']]} onChange={v => setQuery({ of: v === 'log' ? undefined : v })} />
      <Segments label="How grave" value={severity} options={severities} onChange={v => setQuery({ severity: v })} />
      <select aria-label="Component" value={component} onChange={e => setQuery({ component: e.currentTarget.value })}><option value="">every component</option>{components.map(c => <option key={c} value={c}>{c}</option>)}</select>
      <input class="grow" type="search" aria-label="Search the log" placeholder="Search" value={text} onInput={e => setQuery({ q: e.currentTarget.value })} /></div>
    <Panel class="flush"><div class="scroll" tabIndex={0} role="region" aria-label="Lines of the log" style={{ maxHeight: 'calc(100vh - 300px)', overflow: 'auto' }}><table class="log"><tbody>{found.slice(0, 400).map((l, i) => <tr key={`${l.t}${i}`}><td class="nowrap faint" title={Number.isFinite(l.t) ? new Date(l.t).toISOString() : ''}>{Number.isFinite(l.t) ? moment(l.t, serverNow()) : ''}</td>
      <td class={'nowrap ' + (/[EF]/.test(l.s) ? 'late' : l.s === 'W' ? 'soon' : 'faint')}>{({ I: 'info', W: 'warning', E: 'error', F: 'fatal', D: 'debug' } as Record<string, string>)[l.s] ?? l.s}</td><td class="nowrap muted">{l.c}</td><td>{l.msg} <span class="attr">{Object.entries(l.attr).map(([k, v]) => `${k}: ${typeof v === 'object' ? JSON.stringify(v) : v}`).join(' · ').slice(0, 400)}</span></td></tr>)}</tbody></table>
      {log.data && found.length === 0 && <p class="empty">No line is like that.</p>}</div></Panel>
  </>
}

