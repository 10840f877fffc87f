// The members of a replica set: who leads, who follows how closely, and since when.
import { useState } from 'preact/hooks'
import { CommandError, now as serverNow, run, words } from '../api'
import { useLoad } from '../store'
import { exact, iso, moment, Number_, plural, relative, span } from '../time'
import { Badge, Bone, Dialog, Fault, Panel, say } from '../parts/ui'
import type { Bar } from './operations'

interface Member { _id: number; name: string; health: number; state: number; stateStr: string; uptime: number; optime?: { ts?: unknown; t?: number }; optimeDate?: number; lastHeartbeatRecv?: number; lastHeartbeatMessage?: string; syncSourceHost?: string; electionDate?: number; self?: boolean }
interface Config { version: number; members: { _id: number; host: string; priority: number; votes: number; hidden: boolean; arbiterOnly: boolean }[] }
interface State { set: string; term: number; majorityVoteCount: number; members: Member[] }

/** How far a secondary may be behind before it is worth a colour. */
const behindMillis = 10_000

export function Members({ bar }: Bar) {
  const set = useLoad('members', async (s): Promise<{ state: State; config?: Config } | null> => {
    try {
      const [state, config] = await Promise.all([run('admin', { replSetGetStatus: 1 }, s), run('admin', { replSetGetConfig: 1 }, s).then(r => r.config as Config).catch(() => undefined)])
      return { state, config }
    } catch (e) {
      if (e instanceof CommandError && (e.code === 76 || e.code === 94)) return null // no member, or not begun
      throw e
    }
  }, 2000)
  const [stepping, step] = useState(false)
  const d = set.data
  const members = d?.state.members ?? []
  const primary = members.find(m => m.state === 1)
  const lag = (m: Member) => m.state === 1 || !primary || !m.health || m.optimeDate === undefined || primary.optimeDate === undefined ? null : Math.max(0, primary.optimeDate - m.optimeDate)
  const away = members.filter(m => !m.health)
  const worst = Math.max(0, ...members.map(m => lag(m) ?? 0))
  const down = async () => {
    step(false)
    try {
      await run('admin', { replSetStepDown: 60 })
      say('Another member is to lead')
    } catch (e) { say(words(e), true) }
    set.again()
  }
  return <>
    <h1>{d === null ? 'This server is on its own.' : !d ? set.fault ? 'The members cannot be read.' : <Bone w="380px" h={26} /> : !primary ? 'Nobody leads: no write is taken.' : away.length ? `${primary.name} leads. ${Number_(away.length)} ${plural(away.length, 'member does', 'members do')} not answer.` : members.length === 1 ? `${primary.name} leads, alone.` : worst > behindMillis ? `${primary.name} leads, and somebody is ${span(worst)} behind.` : `${primary.name} leads, and all follow.`}</h1>
    <p class="lead">{d === null ? 'It is not a member of a replica set: started with --replSet it would be one.' : d ? `Set ${d.state.set} in term ${exact(d.state.term)}, which each election raises. A write is safe with ${exact(d.state.majorityVoteCount)} of ${exact(members.length)}.` : <Bone w="320px" />}</p>
    {bar}<Fault text={set.fault} />
    {d && <Panel class="flush hover"><div class="scroll" tabIndex={0} role="region" aria-label="Members"><table><thead><tr><th>member</th><th>is</th><th class="r">behind</th><th>last write</th><th>last heard of</th><th>leads since</th><th class="r">votes</th><th class="r">priority</th><th><span class="sr">actions</span></th></tr></thead><tbody>{members.map(m => {
      const c = d.config?.members.find(c => c._id === m._id), l = lag(m)
      return <tr key={m._id}><td><b style={{ fontWeight: 550 }}>{m.name}</b>{m.self && <span class="faint"> this one</span>}{m.syncSourceHost ? <div class="faint">follows {m.syncSourceHost}</div> : ''}{!m.health && m.lastHeartbeatMessage ? <div class="faint">{m.lastHeartbeatMessage}</div> : ''}</td>
        <td><Badge tone={!m.health ? 'late' : m.state === 1 ? 'water' : m.state === 2 ? '' : 'soon'}>{m.health ? m.stateStr.toLowerCase() : 'does not answer'}</Badge></td>
        <td class="r">{l === null ? '–' : <span class={l > behindMillis ? 'late' : ''}>{l === 0 ? 'nothing' : span(l)}</span>}</td><td class="nowrap" title={m.optimeDate ? iso(m.optimeDate) : ''}>{m.optimeDate ? moment(m.optimeDate, serverNow()) : '–'}</td>
        <td class="nowrap">{m.self ? 'here' : m.lastHeartbeatRecv ? relative(m.lastHeartbeatRecv, serverNow()) : 'never'}</td><td class="nowrap" title={m.electionDate ? iso(m.electionDate) : ''}>{m.electionDate ? moment(m.electionDate, serverNow()) : ''}</td>
        <td class="r">{c ? exact(c.votes) : '–'}</td><td class="r">{c ? c.priority : '–'}</td><td class="r">{m.self && m.state === 1 && members.length > 1 && <button class="btn s" onClick={() => step(true)}>Step down</button>}</td></tr>
    })}</tbody></table></div></Panel>}
    {stepping && <Dialog title="Have another member lead?" onClose={() => step(false)}><p>This server does not stand for a minute, and writes wait until another one is elected.</p><div class="bar"><button class="btn d" onClick={() => void down()}>Step down</button><button class="btn" onClick={() => step(false)}>Stay</button></div></Dialog>}
  </>
}
