// What the server is doing, what was slow, who is connected, and what the log says.
import { useState } from 'preact/hooks'
import { all, now as serverNow, run, words } from '../api'
import { place, setQuery } from '../router'
import { hello, useLoad } from '../store'
import { commandShape } from '../shape'
import { exact, moment, Number_, plural, span } from '../time'
import { Badge, Bone, Dialog, Fault, Panel, say, Segments, Tabs } from '../parts/ui'
import { Members } from './members'
import { SlowQueries } from './slow'

export const appName = 'Ebb console'

export function Operations(p: { tab: string }) {
  const bar = <Tabs label="Operations" at={p.tab} tabs={[['running', 'Running', '#/operations/running'], ['slow', 'Slow queries', '#/operations/slow'], ['connections', 'Connections', '#/operations/connections'], ['log', 'Log', '#/operations/log'],
    ...(hello.value?.setName ? [['members', 'Members', '#/operations/members'] as [string, string, string]] : [])]} />
  switch (p.tab) {
    case 'slow': return <SlowQueries bar={bar} />
    case 'members': return <Members bar={bar} />
    case 'connections': return <Connections bar={bar} />
    case 'log': return <Log bar={bar} />
  }
  return <Running bar={bar} />
}

export type Bar = { bar: preact.JSX.Element }
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

export const Plan = (p: { text: string }) => <Badge tone={/COLLSCAN/.test(p.text) ? 'late' : /IDHACK|IXSCAN|COUNT|DISTINCT|EXPRESS|CLUSTERED/.test(p.text) ? 'water' : ''} title={p.text}>{p.text.replace(/^IXSCAN \{ (.*) \}$/, 'IXSCAN $1')}</Badge>

// ---- lines of the log ----

interface Line { t: number; s: string; c: string; msg: string; attr: any; id?: number; ctx?: string }

export function parseLine(text: string): Line {
  try {
    const l = JSON.parse(text)
    return { t: Date.parse(l.t?.$date ?? ''), s: l.s, c: l.c, msg: l.msg, attr: l.attr ?? {}, id: l.id, ctx: l.ctx }
  } catch { return { t: NaN, s: '', c: '', msg: text, attr: {} } }
}

const readLog = async (which: string, s: AbortSignal): Promise<Line[]> => ((await run('admin', { getLog: which }, s)).log as string[]).map(parseLine)

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
    <Panel class="flush hover"><div class="scroll" tabIndex={0} role="region" aria-label="Connections"><table><thead><tr><th>program</th><th>driver</th><th>machine</th><th>user</th><th class="r">connections</th><th class="r">at work</th></tr></thead><tbody>{[...groups.values()].sort((a, b) => b.n - a.n).map((g, i) => <tr key={i}><td>{g.app}</td><td class="muted">{g.driver}</td><td>{g.host}</td><td>{g.user}</td><td class="r">{exact(g.n)}</td><td class="r">{exact(g.active)}</td></tr>)}</tbody></table>
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

