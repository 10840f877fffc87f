// The expiry of a collection: its calendar, its rules in words, and their change, which shows first what it would do.
import { useEffect, useMemo, useState } from 'preact/hooks'
import { CommandError, now as serverNow, run, runDoc, words } from '../api'
import { keyOf, plain, toText, type Doc, type Input, type Value } from '../ejson'
import { forecast, ruleName, ruleState, ruleWords, status, type Bucket, type Forecast, type Rule } from '../expiry'
import { collection, place, setQuery } from '../router'
import { useLoad } from '../store'
import { count, day, exact, hour, iso, many, minute, moment, plural, readSeconds, relative, second, span, ttlWords } from '../time'
import { Badge, Bone, Cell, Confirm, Fault, Panel, Release, say, Segments } from '../parts/ui'
import { Bars } from '../parts/charts'

import type { Part } from './collection'

const reaches: [string, string, number][] = [['10m', '10 min', 10 * minute], ['1h', '1 h', hour], ['1d', '1 day', day], ['1w', '1 week', 7 * day], ['1M', '1 month', 30 * day], ['1y', '1 year', 365 * day], ['10y', '10 years', 3650 * day]]
const bars = 80

export function Expiry(p: Part) {
  const q = place.value.query
  const st = useLoad('expiry ' + p.ns, s => status(p.db, p.name, s), 2000)
  const rules = st.data?.indexes ?? []
  const shown = q.get('rule') ?? ''
  const reach = reaches.find(r => r[0] === q.get('reach')) ?? guess(rules, serverNow(), Number(q.get('until') ?? 0))
  const cal = useLoad(`calendar ${p.ns} ${reach[0]}`, s => forecast(p.db, p.name, bars, serverNow() + reach[2], s), reach[2] > 2 * day ? 30_000 : 4000)
  const all: Forecast[] = cal.data?.indexes ?? []
  const f = all.find(i => ruleName(i) === shown) ?? all.find(i => !i.inert)
  const [from, until] = [q.get('from'), q.get('until')].map(x => x === null ? null : Number(x))
  const chosen: [number, number] | null = until !== null ? [from ?? 0, until] : from !== null ? [from, Number.MAX_SAFE_INTEGER] : null
  const again = () => { st.again(); cal.again() }
  return <>
    {p.crumb}
    <h1>{st.data ? headline(p.name, rules, st.data.heldUpBy) : st.fault ? 'The expiry of this collection cannot be read.' : <Bone w="480px" h={26} />}</h1>
    {p.bar}
    <Fault text={st.fault} />
    {rules.length > 0 && <Panel title="Calendar" aside={<>
      {all.length > 1 && <Segments small label="Rule" value={f ? ruleName(f) : ''} options={all.map(i => [ruleName(i), ruleName(i)])} onChange={v => setQuery({ rule: v, from: undefined, until: undefined })} />}
      <Segments small label="Reach" value={reach[0]} options={reaches.map(([k, t]) => [k, t])} onChange={v => setQuery({ reach: v, from: undefined, until: undefined })} /></>}>
      {f && f.buckets ? <>
        <Bars label={`Documents by deadline, over ${reach[1]}`} series={[{ name: 'deadlines', buckets: f.buckets, fill: 'var(--water-bar)', opacity: .9 }]} from={cal.data.now} until={cal.data.until} now={cal.data.now}
          soonUntil={cal.data.now + Math.min(minute, reach[2] / bars)} chosen={chosen} onChoose={(a, b) => setQuery({ from: a, until: b, reach: reach[0] })} height={200} />
        <p class="faint" style={{ marginTop: '6px' }}>{calendarWords(f, reach[2])} · click a bar or drag over some to see the documents</p>
      </> : <Bone h={190} block />}
      <Fault text={cal.fault} />
    </Panel>}
    {chosen && <Chosen {...p} from={from} until={until} rule={f ? ruleName(f) : ''} />}
    <div class="grid c2">
      <Rules part={p} rules={rules} loading={!st.data} held={st.data?.heldUpBy} documents={cal.data?.documents} onChanged={again} />
      <Never part={p} has={rules.length > 0} />
    </div>
    {q.get('change') !== null && st.data && <Change key={q.get('change')!} part={p} rules={rules} of={q.get('change')!} onDone={again} />}
    <History part={p} />
  </>
}

/** The reach of the calendar that shows most of what is to come. */
function guess(rules: Rule[], now: number, until: number): (typeof reaches)[number] {
  const longest = Math.max(0, until - now, ...rules.map(r => r.expireAfterSeconds > 0 && !r.inert ? r.expireAfterSeconds * second : 0))
  const soonest = Math.min(...rules.map(r => r.oldestDeadline ?? Infinity)) - now
  const wanted = longest > 0 ? longest : Number.isFinite(soonest) ? Math.max(hour, soonest * 2) : day
  return reaches.find(r => r[2] >= wanted) ?? reaches[reaches.length - 1]
}

function headline(name: string, rules: Rule[], held?: string): string {
  const works = rules.filter(r => !r.inert)
  if (works.length === 0) return `Documents of ${name} stay for ever.`
  const tail = rules[0].paused ? ', but deleting is paused.' : held ? ', but expiry is held.' : '.'
  const ts = works.find(r => r.field === '_ts')
  const main = ts ?? works[0]
  if (works.length === 1) return main.field === '_ts' && main.expireAfterSeconds < 0 ? `Of ${name} go those that have a ttl of their own${tail}` : `${upper(name)} go ${ruleWords(main)}${tail}`
  return `${upper(name)} go ${ruleWords(main)}, or earlier by ${works.length === 2 ? 'another rule' : `${works.length - 1} other rules`}${tail}`
}

const upper = (s: string) => s[0].toUpperCase() + s.slice(1)

function calendarWords(f: Forecast, reach: number): string {
  const inside = f.buckets.reduce((n, b) => n + b.count, 0)
  const parts = [`each bar ${span(reach / bars)}`, `${exact(inside)} go in this time`]
  if (f.later) parts.push(`${exact(f.later)} later`)
  if (f.backlog) parts.push(`${exact(f.backlog)} ${f.backlog === 1 ? 'is' : 'are'} past ${f.backlog === 1 ? 'its' : 'their'} deadline`)
  if (!f.exact) parts.push(f.countedTo ? `counted up to ${moment(f.countedTo, serverNow())}` : 'not all are counted')
  return parts.join(' · ')
}

// ---- documents of a stretch of the calendar ----

function Chosen(p: Part & { from: number | null; until: number | null; rule: string }) {
  const limit = 20
  const docs = useLoad(`chosen ${p.ns} ${p.from} ${p.until} ${p.rule}`, async s => {
    const stage: Record<string, Input> = {}
    if (p.from !== null) stage.from = new Date(p.from)
    if (p.until !== null) stage.until = new Date(p.until)
    if (p.rule !== '' && p.rule !== 'clustered' && p.rule !== 'timeseries') stage.index = p.rule
    const reply = await runDoc(p.db, { aggregate: p.name, pipeline: [{ $ebbTTL: stage }, { $limit: limit + 1 }], cursor: { batchSize: limit + 1 } }, s)
    return (reply.get('cursor') as Doc).get('firstBatch') as Doc[]
  })
  const rows = docs.data ?? []
  const when = p.until === null ? `after ${moment(p.from!, serverNow())}` : p.from === null ? `up to ${moment(p.until, serverNow())}` : `from ${moment(p.from, serverNow())} to ${moment(p.until, serverNow())}`
  return <Panel title={`What goes ${when}`} aside={<><a class="btn s" href={collection(p.ns, 'documents', { goesFrom: p.from ?? undefined, goesUntil: p.until ?? undefined, goesBy: p.rule })}>Open as documents</a>
    <button class="btn s" onClick={() => setQuery({ from: undefined, until: undefined })}>Close</button></>}>
    <Fault text={docs.fault} />
    {docs.data && rows.length === 0 && <p class="muted">None that can be seen.</p>}
    {rows.length > 0 && <div class="scroll"><table><thead><tr><th>_id</th><th>goes</th><th>by</th><th>document</th><th><span class="sr">actions</span></th></tr></thead><tbody>{rows.slice(0, limit).map((r, i) => {
      const d = r.get('document') as Doc, at = plain(r.get('deadline')) as number, id = d.get('_id')!
      return <tr key={i}><td class="nowrap mono"><Cell value={id} /></td><td class="nowrap" title={iso(at)}>{relative(at, serverNow())}</td><td class="nowrap muted">{plain(r.get('reason')) === 'ttl' ? 'its own ttl' : String(plain(r.get('index')) ?? plain(r.get('field')))}</td>
        <td class="mono faint" style={{ overflowWrap: 'anywhere' }}>{toText(new Map([...d].filter(([k]) => k !== '_id')), 150)}</td><td class="r"><a href={collection(p.ns, 'why', { id: keyOf(id) })}><u>why</u></a></td></tr>
    })}</tbody></table></div>}
    {rows.length > limit && <p class="faint" style={{ marginTop: '8px' }}>The first {limit}, in the order in which they go.</p>}
  </Panel>
}

// ---- the rules ----

function Rules(p: { part: Part; rules: Rule[]; loading: boolean; held?: string; documents?: number; onChanged: () => void }) {
  const [fault, setFault] = useState('')
  const paused = p.rules.some(r => r.paused)
  const backlog = p.rules.reduce((n, r) => n + (r.backlog ?? 0), 0)
  const [asking, ask] = useState(false)
  const pause = async () => {
    setFault('')
    ask(false)
    try {
      await run(p.part.db, { collMod: p.part.name, ttlPaused: !paused })
      say(paused ? `Deleting goes on in ${p.part.ns}` : `Deleting is paused in ${p.part.ns}`)
      p.onChanged()
    } catch (e) { setFault(words(e)) }
  }
  const ts = p.rules.find(r => r.field === '_ts')
  const own = p.rules.some(r => r.timeseries)
  return <Panel title="Rules">
    {p.loading ? <Bone h={60} block /> : <ul class="rules">
      {!own && !ts && <li><div><b>after the last change</b>, as each document's <code>ttl</code> says<br /><span class="muted">off</span></div><div class="sp"><button class="btn s" onClick={() => setQuery({ change: '_ts' })}>Switch on</button></div></li>}
      {p.rules.map(r => {
        const s = ruleState(r, p.held)
        return <li key={ruleName(r)}><div style={{ minWidth: 0 }}><b>{ruleWords(r)}</b><br /><span class="muted">
          {r.field === '_ts' && r.expireAfterSeconds >= 0 && <>unless the document has its own <code>ttl</code> · </>}
          {r.index ? <code>{r.index}</code> : r.clustered ? 'the collection’s own rule' : 'the time series’ own rule'} · {r.hidesExpired ? 'hides at once' : 'stays visible until deleted'}
          {r.deadEntries ? <> · <span title="Index entries of documents that are deleted; they are vacuumed in the background">{many(r.deadEntries, 'dead entry', 'dead entries')}</span></> : ''}
          {r.ordered === false && r.unclustered ? <> · <span title="Documents that do not lie in the order of expiry yet: they are deleted one by one">{many(r.unclustered, 'document')} not in order</span></> : r.ordered ? <> · in order</> : ''}
          {r.graceUntil ? <> · <span class="soon">what was due waits until {moment(r.graceUntil, serverNow())}</span></> : ''}</span></div>
          <div class="sp"><Badge tone={s.tone} title={s.title}>{s.text}</Badge><button class="btn s" onClick={() => setQuery({ change: ruleName(r) })} aria-label={`Change: ${ruleWords(r)}`}>Change</button></div></li>
      })}
    </ul>}
    <div class="bar" style={{ margin: '16px 0 0' }}>
      {!own && <button class="btn" onClick={() => setQuery({ change: 'new' })}>Add a rule</button>}
      {p.rules.length > 0 && <button class="btn" onClick={() => { if (paused && backlog > 0) ask(true); else void pause() }}>{paused ? backlog > 0 ? 'Resume…' : 'Resume' : 'Pause'}</button>}
      {paused ? <span class="faint">Nothing is deleted here. What hides goes on hiding.</span> : p.rules[0]?.deletedEver ? <span class="faint">{many(p.rules[0].deletedEver, 'document')} gone so far</span> : ''}
    </div>
    {asking && <Release title={`Resume deleting in ${p.part.ns}`} n={backlog} more={p.rules.some(r => r.backlogIsMore)} onConfirm={pause} onClose={() => ask(false)} />}
    <Fault text={fault} />
  </Panel>
}

/** Why documents stay, by reason. */
export interface NeverReply { now: number; docsExamined: number; exact: boolean; never: number; reasons: { count: number; rules: { index?: string; field: string; code: string; type?: string; reason: string }[]; samples: Value[] }[]; otherReasons?: number }

export async function readNever(db: string, coll: string, samples: number, examine: number, s?: AbortSignal): Promise<NeverReply> {
  const doc = await runDoc(db, { ebbTTL: coll, never: { samples, examine } }, s)
  const out = plain(doc) as NeverReply
  ;(doc.get('reasons') as Doc[]).forEach((r, i) => { out.reasons[i].samples = r.get('samples') as Value[] })
  return out
}

export function reasonWords(r: NeverReply['reasons'][number]): preact.JSX.Element {
  const one = (x: NeverReply['reasons'][number]['rules'][number]) => {
    switch (x.code) {
      case 'noSuchField': return <><code>{x.field}</code> is missing</>
      case 'notADate': return <><code>{x.field}</code> is {article(x.type ?? 'no date')}, not a date</>
      case 'ttlMinusOne': return <><code>ttl</code> is −1: pinned</>
      case 'noDefault': return <>no <code>ttl</code> of its own</>
      case 'outsidePartialFilter': return <>outside the filter of <code>{x.index}</code></>
      default: return <>{x.reason}</>
    }
  }
  if (r.rules.length === 0) return <>no rule applies to them</>
  return <>{r.rules.map((x, i) => <span key={i}>{i > 0 ? ', ' : ''}{one(x)}</span>)}</>
}

const article = (type: string) => (/^[aeio]/.test(type) ? 'an ' : 'a ') + type

function Never(p: { part: Part; has: boolean }) {
  const n = useLoad('never ' + p.part.ns, s => readNever(p.part.db, p.part.name, 1, 200_000, s), 60_000)
  return <Panel title="These never go" aside={<a class="faint" href={collection(p.part.ns, 'why')}><u>all reasons</u></a>}>
    {n.fault ? <p class="muted">{n.fault}</p> : !n.data ? <Bone h={60} block /> : <>
      {n.data.never === 0 ? <p class="muted">{n.data.docsExamined === 0 ? 'There are no documents.' : 'Every document has a deadline.'}</p> : <table><tbody>{n.data.reasons.slice(0, 5).map((r, i) => <tr key={i}><td style={{ paddingLeft: 0 }}>{reasonWords(r)}</td>
        <td class="r" style={{ paddingRight: 0 }}>{r.samples.length ? <a href={collection(p.part.ns, 'why', { id: keyOf(r.samples[0]) })} title="Why one of them stays"><u>{exact(r.count)}</u></a> : exact(r.count)}</td></tr>)}</tbody></table>}
      <p class="faint" style={{ margin: '10px 0 0' }}>{exact(n.data.never)} of {exact(n.data.docsExamined)} documents{n.data.exact ? '' : ' that were looked at; there are more'}.</p>
    </>}
  </Panel>
}

// ---- a change, and what it would do ----

/** What a dry run says. */
interface Tried {
  documents: number; wouldExpire?: number; wouldDelete?: number; wouldKeep?: number; heldUpBy?: string; needsForce?: boolean; loosened?: { index?: string; hidden: number }[]
  sample?: Sampled[]; forecast?: { now: number; until: number; before: Forecast[]; after: Forecast[] }
}

/** A document that would go at once; without it where one may not read it, or it is not there any more. */
interface Sampled { _id: Value; deadline: number; document?: Doc }

/** The calendar before and after a change. */
interface Calendar { now: number; until: number; before: Bucket[]; after: Bucket[] }

type Mode = 'off' | 'none' | 'on'

/** How many documents a dry run shows, and for how long it may look at what is more than numbers. */
const sampled = 8, previewMillis = 10_000

/** Tries a change, with some of the documents that would go and the calendar before and after; without those where one may not see them, or it takes too long. */
async function dryRun(p: Part, command: { [key: string]: Input }, reach: number, s: AbortSignal): Promise<Tried> {
  const bare = { ...command, dryRun: true }
  let doc: Doc
  try {
    doc = await runDoc(p.db, { ...bare, sample: sampled, forecast: { buckets: bars, until: new Date(serverNow() + reach) }, maxTimeMS: previewMillis }, s)
  } catch (e) {
    if (!(e instanceof CommandError) || e.code !== 13 && e.code !== 50) throw e
    doc = await runDoc(p.db, bare, s)
  }
  const out = plain(doc) as Tried
  const ids = ((doc.get('sample') ?? []) as Doc[]).map(d => d.get('_id')!)
  out.sample?.forEach((x, i) => { x._id = ids[i] })
  if (ids.length > 0) {
    const found = await runDoc(p.db, { find: p.name, filter: { _id: { $in: ids } }, batchSize: ids.length }, s).then(docsOf).catch(() => [] as Doc[])
    const byId = new Map(found.map(d => [keyOf(d.get('_id')!), d]))
    out.sample?.forEach(x => { x.document = byId.get(keyOf(x._id)) })
  }
  return out
}

/** The calendar of the rule that changes. */
function calendarOf(t: Tried, rule: string): Calendar | undefined {
  if (!t.forecast) return undefined
  const of = (side: Forecast[]) => side.find(f => ruleName(f) === rule)?.buckets ?? []
  return { now: t.forecast.now, until: t.forecast.until, before: of(t.forecast.before), after: of(t.forecast.after) }
}

const docsOf = (reply: Doc): Doc[] => (reply.get('cursor') as Doc).get('firstBatch') as Doc[]

function Change(p: { part: Part; rules: Rule[]; of: string; onDone: () => void }) {
  const q = place.value.query
  const isTs = p.of === '_ts' || p.rules.some(r => ruleName(r) === p.of && r.field === '_ts')
  const isNew = p.of === 'new' || p.of === '_ts'
  const was = p.rules.find(r => ruleName(r) === p.of)
  const [mode, setMode] = useState<Mode>((q.get('mode') as Mode | null) ?? (was ? was.expireAfterSeconds < 0 ? 'none' : 'on' : isTs ? 'none' : 'on'))
  const [text, setText] = useState(q.get('ttl') ?? (was && was.expireAfterSeconds >= 0 ? ttlWords(was.expireAfterSeconds) : isTs ? '30 minutes' : '0 seconds'))
  const [field, setField] = useState(q.get('field') ?? '')
  const [hides, setHides] = useState(was?.hidesExpired ?? false)
  const [keep, setKeep] = useState(false)
  const [busy, setBusy] = useState(false)
  const [fault, setFault] = useState('')
  const seconds = mode === 'none' ? -1 : readSeconds(text)
  useEffect(() => { setQuery({ ttl: text, mode, field: p.of === 'new' ? field : undefined }) }, [text, mode, field])
  const command = useMemo((): { [key: string]: Input } | null => {
    const { name } = p.part
    if (mode === 'off') {
      if (!was) return null
      return was.index ? { dropIndexes: name, index: was.index, ...(keep ? { keepExpired: true } : {}) } : { collMod: name, expireAfterSeconds: 'off', ...(keep ? { keepExpired: true } : {}) }
    }
    if (seconds === null || seconds < -1 || seconds > 2147483647 || (mode === 'on' && seconds < 0)) return null
    if (!was) {
      const on = isTs ? '_ts' : field.trim()
      if (on === '') return null
      return { createIndexes: name, indexes: [{ key: { [on]: 1 }, name: `${on}_1`, expireAfterSeconds: seconds, ...(hides && !isTs ? { hideExpired: true } : {}) }] }
    }
    if (seconds === was.expireAfterSeconds && hides === was.hidesExpired) return null
    const keeping = keep ? { keepExpired: true } : {}
    if (!was.index) return { collMod: name, expireAfterSeconds: seconds, ...keeping }
    return { collMod: name, index: { name: was.index, expireAfterSeconds: seconds, ...(!isTs && hides !== was.hidesExpired ? { hideExpired: hides } : {}) }, ...keeping }
  }, [mode, seconds, field, hides, keep, was?.expireAfterSeconds, was?.hidesExpired])
  const key = command ? JSON.stringify(command) : ''
  const [settled, settle] = useState(key)
  useEffect(() => { const t = setTimeout(() => settle(key), 350); return () => clearTimeout(t) }, [key])
  const reach = Math.max(10 * minute, 1.1 * second * Math.max(was?.expireAfterSeconds ?? 0, seconds ?? 0))
  const tried = useLoad<Tried | null>(`try ${p.part.ns} ${settled}`, async s => settled ? dryRun(p.part, JSON.parse(settled), reach, s) : null)
  const t = tried.data
  const calendar = t ? calendarOf(t, was ? ruleName(was) : `${isTs ? '_ts' : field.trim()}_1`) : undefined
  const gone = (t?.wouldExpire ?? 0) + (t?.wouldDelete ?? 0)
  const close = () => setQuery({ change: undefined, ttl: undefined, mode: undefined, field: undefined })
  const apply = async () => {
    setBusy(true)
    setFault('')
    try {
      await run(p.part.db, { ...command!, ...(t?.needsForce ? { force: true } : {}) })
      say(mode === 'off' ? 'The rule is gone' : 'The rule is changed')
      p.onDone()
      close()
    } catch (e) { setFault(words(e)) }
    setBusy(false)
  }
  const title = isTs ? (was ? 'Change: after the last change' : 'Switch on: after the last change') : was ? `Change: ${ruleWords(was)}` : 'A new rule'
  const asks = gone > 0
  return <Panel title={title} class={asks ? 'danger' : ''} aside={<button class="btn s" onClick={close}>Close</button>}>
    <div class="bar">
      {isTs ? <Segments<Mode> label="Default" value={mode} options={[['off', 'Off'], ['none', 'On, no default'], ['on', 'On']]} onChange={setMode} />
        : was ? <Segments<Mode> label="Rule" value={mode} options={[['off', 'Off'], ['on', 'On']]} onChange={setMode} />
          : <Fields part={p.part} value={field} onChange={setField} />}
      {mode === 'on' && <><input type="text" value={text} size={14} aria-label="time to live" onInput={e => setText(e.currentTarget.value)} aria-invalid={seconds === null} />
        <span class={seconds === null ? 'late' : 'muted'}>{seconds === null ? 'such as 10 minutes, 14 days, 3600' : <>= {exact(seconds)} s{isTs ? ' after the last change' : field || was ? <> after <code>{was?.field ?? field}</code></> : ''}{was && was.expireAfterSeconds >= 0 && was.expireAfterSeconds !== seconds ? `, was ${exact(was.expireAfterSeconds)} s` : ''}</>}</span></>}
      {mode === 'none' && <span class="muted">only documents with a <code>ttl</code> of their own go</span>}
      {!isTs && mode === 'on' && !was?.clustered && !was?.timeseries && <label class="check"><input type="checkbox" checked={hides} onChange={e => setHides(e.currentTarget.checked)} />hide at the deadline, before it is deleted</label>}
    </div>
    {(mode === 'off' || (t?.loosened?.length ?? 0) > 0 || keep) && <div class="bar"><Segments small label="What is hidden" value={keep ? 'keep' : 'delete'} options={[['delete', 'What is hidden by it is deleted'], ['keep', 'What is hidden comes back']]} onChange={v => setKeep(v === 'keep')} /></div>}
    {!command ? <p class="muted">{isNew && !isTs && field.trim() === '' ? 'Say by which field documents should go: one that holds a date.' : 'Nothing changes by this.'}</p>
      : tried.fault ? <Fault text={tried.fault} /> : !t || settled !== key ? <Bone h={70} block /> : <>
        {calendar && <BeforeAfter f={calendar} gone={t.wouldExpire ?? 0} />}
        <Outcome t={t} mode={mode} hides={isTs || hides} />
        {t.sample && t.sample.length > 0 && <Sample part={p.part} of={t.sample} all={gone} />}
        {t.heldUpBy && <p class="note held">{t.heldUpBy}</p>}
        {asks ? <Confirm ask={String(gone)} label={mode === 'off' ? 'Switch off, and delete them' : 'Change, and let them go'} busy={busy} onConfirm={apply} onCancel={close} />
          : <div class="bar" style={{ margin: '14px 0 0' }}><button class="btn p" disabled={busy} onClick={apply}>{mode === 'off' ? 'Switch off' : was ? 'Change' : 'Switch on'}</button><button class="btn" onClick={close}>Leave as it is</button></div>}
      </>}
    <Fault text={fault} />
  </Panel>
}

/** Some of the documents that would go, the earliest deadlines first. */
const Sample = (p: { part: Part; of: Sampled[]; all: number }) => <div class="scroll"><table><thead><tr><th>{p.of.length < p.all ? `${exact(p.of.length)} of them` : '_id'}</th><th>would have gone</th><th>document</th><th><span class="sr">actions</span></th></tr></thead><tbody>{p.of.map((s, i) => <tr key={i}><td class="mono nowrap"><Cell value={s._id} /></td>
  <td class="nowrap" title={iso(s.deadline)}>{relative(s.deadline, serverNow())}</td><td class="mono faint" style={{ overflowWrap: 'anywhere' }}>{s.document ? toText(new Map([...s.document].filter(([k]) => k !== '_id')), 130) : '–'}</td>
  <td class="r"><a href={collection(p.part.ns, 'why', { id: keyOf(s._id) })}><u>why</u></a></td></tr>)}</tbody></table></div>

function Outcome(p: { t: Tried; mode: Mode; hides: boolean }) {
  const { t } = p
  if ((t.wouldDelete ?? 0) > 0) return <div class="warn"><b>{exact(t.wouldDelete!)} {plural(t.wouldDelete!, 'document is', 'documents are')} hidden by this rule and would be deleted with it.</b><br />Say above that they come back, if they should.</div>
  if ((t.wouldKeep ?? 0) > 0) return <div class="note"><b>{exact(t.wouldKeep!)} hidden {plural(t.wouldKeep!, 'document comes', 'documents come')} back.</b></div>
  const n = t.wouldExpire ?? 0
  if (n === 0) return <div class="note"><b>No document would be past its deadline at once.</b> {p.mode === 'off' ? 'What is there stays.' : `Of ${exact(t.documents)} that are there.`}</div>
  return <div class="warn"><b>{exact(n)} of {exact(t.documents)} documents would be past their deadline at once.</b><br />
    {p.hides ? 'They are hidden when you save, and deleted after the time to change one’s mind (ttlChangeGraceSecs), a minute unless it was changed; until then they can be brought back.' : 'They can be seen until they are deleted, which is after the time to change one’s mind (ttlChangeGraceSecs), a minute unless it was changed.'}
    {t.needsForce && <><br />That is more than the guard against mass expiry lets through; the confirmation overrules it.</>}</div>
}

function BeforeAfter(p: { f: Calendar; gone: number }) {
  const { before, after } = p.f
  const none = (like: Bucket[]) => like.map(b => ({ ...b, count: 0 }))
  if (before.length + after.length === 0) return null
  return <><Bars height={150} label="The calendar before and after the change" from={p.f.now} until={p.f.until} now={p.f.now} atOnce={{ text: 'gone at once', count: p.gone }}
    series={[{ name: 'before', buckets: before.length ? before : none(after), fill: 'var(--never-bar)' }, { name: 'after', buckets: after.length ? after : none(before), fill: 'var(--water-bar)', opacity: .85 }]} />
    <p class="legend"><span><i style={{ background: 'var(--never-bar)' }} />before</span><span><i style={{ background: 'var(--water-bar)' }} />after</span></p></>
}

/** The fields that hold dates, of a sample of documents. */
function Fields(p: { part: Part; value: string; onChange: (v: string) => void }) {
  const found = useLoad('fields ' + p.part.ns, async s => {
    const reply = await runDoc(p.part.db, { aggregate: p.part.name, pipeline: [{ $sample: { size: 100 } }], cursor: { batchSize: 100 } }, s)
    const dates = new Set<string>()
    for (const d of (reply.get('cursor') as Doc).get('firstBatch') as Doc[]) for (const [k, v] of d) if (v !== null && typeof v === 'object' && 'ms' in v) dates.add(k)
    return [...dates]
  })
  return <span class="bar" style={{ margin: 0 }}><label for="rule-field">by the date in</label><input id="rule-field" type="text" list="date-fields" placeholder="field" size={14} value={p.value} onInput={e => p.onChange(e.currentTarget.value)} autocomplete="off" spellcheck={false} />
    <datalist id="date-fields">{(found.data ?? []).map(f => <option key={f} value={f} />)}</datalist></span>
}

// ---- what was done to the rules ----

interface Event_ { at: number; event: string; index?: string; field?: string; old?: number; new?: number; wouldExpire?: number; deleted?: number; kept?: number; atOnce?: number; cause?: string; by?: { command?: string; client?: string; user?: string; appName?: string } }

function History(p: { part: Part }) {
  const h = useLoad('history ' + p.part.ns, async s => (await run('local', { find: 'ttl_history', filter: { ns: p.part.ns }, sort: { $natural: -1 }, limit: 12, batchSize: 12 }, s)).cursor.firstBatch as Event_[], 10_000)
  if (h.fault || !h.data?.length) return null
  const ttl = (n?: number) => n === undefined ? '–' : n < 0 ? 'no default' : ttlWords(n)
  const what = (e: Event_) => {
    switch (e.event) {
      case 'created': return `made: ${ttl(e.new)}`
      case 'changed': return `changed from ${ttl(e.old)} to ${ttl(e.new)}`
      case 'dropped': return `dropped, was ${ttl(e.old)}`
      case 'sweep': return `${exact(e.deleted ?? 0)} documents deleted${e.atOnce ? ', at once' : ''}`
      default: return e.event
    }
  }
  return <Panel title="What was done here"><div class="scroll" tabIndex={0} role="region" aria-label="What was done here"><table><thead><tr><th>when</th><th>rule</th><th>what</th><th class="r">due by it</th><th>by whom</th></tr></thead><tbody>{h.data.map((e, i) => <tr key={i}><td class="nowrap" title={iso(e.at)}>{moment(e.at, serverNow())}</td>
    <td><code>{e.index ?? e.field ?? '–'}</code></td><td>{what(e)}</td><td class="r">{e.wouldExpire !== undefined && e.event !== 'sweep' ? count(e.wouldExpire) : ''}</td><td class="muted">{[e.by?.user, e.by?.command, e.by?.appName ?? e.by?.client].filter(Boolean).join(' · ')}</td></tr>)}</tbody></table></div></Panel>
}
