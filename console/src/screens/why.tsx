// One document's life, in a sentence and a line of time; and of a collection, why some of its documents never go.
import { useState } from 'preact/hooks'
import { now as serverNow, run, runDoc, words } from '../api'
import { keyOf, ObjectId, parse, toLines, toText, type Doc, type Value } from '../ejson'
import { explain, status, type Explained } from '../expiry'
import { collection, go, place } from '../router'
import { useLoad } from '../store'
import { exact, iso, minute, moment, plural, readSeconds, relative, span, ttlWords } from '../time'
import { Bone, Confirm, Dialog, Fault, Json, Panel, say } from '../parts/ui'
import { readNever, reasonWords, type NeverReply } from './expiry'
import { keepFor, keptWords, pin, type RuleOf } from '../rescue'
import type { Part } from './collection'

export function Why(p: Part) {
  const id = place.value.query.get('id')
  return id === null ? <Reasons {...p} /> : <OneDocument key={id} {...p} id={id} />
}

/** What somebody types as an _id: a value as the shell takes it, or else a text. */
function readId(text: string): Value {
  try { return parse(text.trim()) } catch { return text.trim() }
}

function Search(p: { ns: string }) {
  const [text, setText] = useState('')
  return <form class="bar" onSubmit={e => { e.preventDefault(); if (text.trim()) go(collection(p.ns, 'why', { id: keyOf(readId(text)) })) }}>
    <label class="muted" for="why-id">Why does the document</label><input id="why-id" type="text" class="mono" size={34} placeholder='_id, such as s_7f3a or ObjectId("…")' value={text} onInput={e => setText(e.currentTarget.value)} spellcheck={false} autocomplete="off" />
    <span class="muted">go, or stay?</span><button class="btn">Ask</button></form>
}

// ---- a collection ----

function Reasons(p: Part) {
  const all = place.value.query.get('all') === '1'
  const n = useLoad(`reasons ${p.ns} ${all}`, s => readNever(p.db, p.name, 5, all ? 0 : 1_000_000, s))
  const st = useLoad('why rules ' + p.ns, s => status(p.db, p.name, s))
  const d = n.data
  const rules = st.data?.indexes.filter(r => !r.inert) ?? []
  return <>{p.crumb}
    <h1>{n.fault ? 'Why documents stay cannot be read.' : !d ? <Bone w="420px" h={26} /> : d.docsExamined === 0 ? 'There are no documents.' : d.never === 0 ? 'Every document has a deadline.'
      : rules.length === 0 ? 'All documents stay: there is no rule.' : `${exact(d.never)} of ${exact(d.docsExamined)} documents never go.`}</h1>
    {p.bar}<Fault text={n.fault} />
    <Search ns={p.ns} />
    {d && d.never > 0 && <Panel title="The reasons" aside={!d.exact ? <a class="btn s" href={collection(p.ns, 'why', { all: 1 })}>Look at all of them</a> : undefined}>
      <div class="scroll"><table><thead><tr><th>why</th><th class="r">documents</th><th>some of them</th><th><span class="sr">actions</span></th></tr></thead><tbody>{d.reasons.map((r, i) => <tr key={i}><td style={{ minWidth: '240px' }}>{reasonWords(r)}{r.rules.length > 0 && <div class="faint">{r.rules.map(x => x.reason).filter((x, i, a) => a.indexOf(x) === i).join('; ')}</div>}</td><td class="r">{exact(r.count)}</td>
        <td>{r.samples.map((s, k) => <span key={k}>{k > 0 ? ', ' : ''}<a class="mono" href={collection(p.ns, 'why', { id: keyOf(s) })}><u>{toText(s, 40)}</u></a></span>)}</td>
        <td class="r">{filterFor(r) && <a class="btn s" href={collection(p.ns, 'documents', { q: filterFor(r)! })}>Show them</a>}</td></tr>)}</tbody></table></div>
      {d.otherReasons ? <p class="faint">{exact(d.otherReasons)} more have other reasons.</p> : null}
      {!d.exact && <p class="faint" style={{ marginTop: '10px' }}>{exact(d.docsExamined)} documents were looked at; there are more.</p>}
    </Panel>}
  </>
}

/** A filter that finds the documents of a reason; null where none does. */
function filterFor(r: NeverReply['reasons'][number]): string | null {
  const parts = r.rules.map(x => {
    const f = /^[A-Za-z_]\w*$/.test(x.field) ? x.field : JSON.stringify(x.field)
    switch (x.code) {
      case 'noSuchField': return `${f}: { $exists: false }`
      case 'notADate': return x.type ? `${f}: { $type: ${JSON.stringify(x.type)} }` : null
      case 'ttlMinusOne': return 'ttl: -1'
      case 'noDefault': return null
      default: return null
    }
  })
  const known = parts.filter((x): x is string => x !== null)
  return known.length === 0 ? null : `{ ${[...new Set(known)].join(', ')} }`
}

// ---- one document ----

function OneDocument(p: Part & { id: string }) {
  let id: Value
  try { id = parse(p.id) } catch { id = p.id }
  const e = useLoad(`why ${p.ns} ${p.id}`, s => explain(p.db, p.name, id, s), 2000)
  const doc = useLoad(`why doc ${p.ns} ${p.id} ${e.data?.lastModified ?? ''}`, async s => ((await runDoc(p.db, { find: p.name, filter: new Map([['_id', id]]) as Doc, limit: 1 }, s)).get('cursor') as Doc).get('firstBatch') as Doc[])
  const [asking, ask] = useState<'' | 'keep' | 'delete'>('')
  const d = e.data
  const found = doc.data?.[0]
  const again = () => { e.again(); doc.again(); ask('') }
  const done = async <T,>(what: Promise<T>, how: string | ((x: T) => { text: string; bad: boolean })) => {
    try {
      const x = await what
      const { text, bad } = typeof how === 'string' ? { text: how, bad: false } : how(x)
      say(text, bad)
      again()
    } catch (x) { say(words(x), true) }
  }
  return <>{p.crumb}
    <h1>{e.fault ? 'Why it goes or stays cannot be read.' : d ? sentence(d) : <Bone w="520px" h={26} />}</h1>
    <p class="lead">{d ? second(d, found) : <Bone w="380px" />}</p>
    {p.bar}<Fault text={e.fault} />
    {d?.found && <Panel><div class="life" tabIndex={0} role="region" aria-label="Its life"><Life e={d} id={id} /></div></Panel>}
    {d && !d.found && <Search ns={p.ns} />}
    {d?.found && <div class="grid c2">
      <Panel title="Rules that looked at it">
        {(d.rules ?? []).length === 0 ? <p class="muted">The collection has no rule.</p> : <div class="scroll"><table><thead><tr><th>rule</th><th>says</th><th class="r">deadline</th></tr></thead><tbody>{d.rules!.map((r, i) => <tr key={i}><td class="nowrap"><code>{r.index ?? (r.clustered ? 'its own' : r.field)}</code>{r.expireAfterSeconds >= 0 ? `, ${exact(r.expireAfterSeconds)} s` : ''}</td>
          <td>{r.reason}{r.graceUntil ? <div class="soon">deleted not before {moment(r.graceUntil, d.now)}</div> : ''}</td><td class="r" title={r.deadline ? iso(r.deadline) : ''}>{r.deadline === undefined ? '–' : r.deadline === d.deadline ? <b>{moment(r.deadline, d.now)}</b> : relative(r.deadline, d.now)}</td></tr>)}</tbody></table></div>}
        {(d.notes ?? []).map((n, i) => <p key={i} class="note soon">{n}</p>)}
        <div class="bar" style={{ margin: '16px 0 0' }}>
          <button class="btn p" disabled={!d.visible} onClick={() => ask('keep')}>Keep it for…</button>
          {d.rules?.some(r => r.field === '_ts') && <button class="btn" disabled={!d.visible} onClick={() => void done(pin(p.db, p.name, [id]), 'It is pinned')}>Pin: never</button>}
          <button class="btn" disabled={!d.visible} onClick={() => ask('delete')}>Delete now</button>
        </div>
      </Panel>
      <Panel title="Document" aside={found && <a class="btn s" href={collection(p.ns, 'documents', { q: toText(new Map([['_id', id]])), doc: p.id })}>Open</a>}>{found ? <Json text={toLines(found)} /> : doc.data ? <p class="muted">It is hidden: it has expired, and nobody sees it any more.</p> : <Bone h={80} block />}</Panel>
    </div>}
    {asking === 'keep' && <KeepDialog rules={d?.rules ?? []} n={1} onClose={() => ask('')} onKeep={s => done(keepFor(p.db, p.name, { _id: { $in: [id] } }, d?.rules ?? [], s), k => keptWords('It is', k, s))} />}
    {asking === 'delete' && <Dialog title="Delete this document" onClose={() => ask('')}><Confirm ask="1" label="Delete it" onCancel={() => ask('')} onConfirm={() => void done(run(p.db, { delete: p.name, deletes: [{ q: { _id: id }, limit: 1 }] }), 'It is deleted')} /></Dialog>}
  </>
}

/** Asks for how long documents are to be kept. */
export function KeepDialog(p: { rules: RuleOf[]; n: number; onKeep: (seconds: number) => void; onClose: () => void }) {
  const [text, setText] = useState('1 day')
  const s = readSeconds(text)
  const ok = s !== null && s >= 1 && s <= 2147483647
  const ts = p.rules.some(r => r.field === '_ts'), dates = p.rules.filter(r => r.field !== '_ts').map(r => r.field)
  return <Dialog title={p.n === 1 ? 'Keep it for' : `Keep ${exact(p.n)} documents for`} onClose={p.onClose}>
    <form class="stack" onSubmit={e => { e.preventDefault(); if (ok) p.onKeep(s!) }}>
      <div class="bar"><input type="text" value={text} autoFocus aria-label="for how long" onInput={e => setText(e.currentTarget.value)} /><span class={ok ? 'muted' : 'late'}>{ok ? `until ${moment(serverNow() + s! * 1000, serverNow())}` : 'such as 2 hours, 14 days'}</span></div>
      <p class="muted">{ts && <>Sets <code>ttl</code> to {s !== null ? exact(s) : '…'}, counted from this change. </>}{dates.length > 0 && <>Moves the {plural(dates.length, 'date')} in {dates.map((f, i) => <span key={f}>{i > 0 ? ', ' : ''}<code>{f}</code></span>)}, where there is one.</>}{p.rules.length === 0 && 'No rule applies: it stays as it is.'}</p>
      <div class="bar"><button class="btn p" disabled={!ok || p.rules.length === 0}>Keep</button><button type="button" class="btn" onClick={p.onClose}>Leave as it is</button></div>
    </form></Dialog>
}

function sentence(e: Explained & { now: number }): string {
  if (!e.found) return 'There is no such document.'
  if (!e.expires) return e.rules?.length ? 'It never goes.' : 'It never goes: the collection has no rule.'
  const d = e.deadline!
  const r = e.rules?.find(r => r.deadline === d)
  const by = !r ? '' : r.field === '_ts' ? own(r.reason) ? ', by a ttl of its own' : `, ${r.expireAfterSeconds === 1800 ? 'half an hour' : ttlWords(r.expireAfterSeconds)} after its last change` : r.expireAfterSeconds === 0 ? `, the time in ${r.field}` : `, ${ttlWords(r.expireAfterSeconds)} after ${r.field}`
  if (d > e.now) return `It goes in ${span(d - e.now)}, ${at(d, e.now)}${by}.`
  if (e.heldUpBy) return `It was to go ${span(e.now - d)} ago, and is held up.`
  return e.visible ? `It was to go ${span(e.now - d)} ago, and is about to be deleted.` : `It has been gone for ${span(e.now - d)}: nobody sees it, and it is about to be deleted.`
}

/** "at 14:49:31", "on 3 Dec 14:00", "tomorrow 09:00". */
const at = (ms: number, now: number) => { const m = moment(ms, now); return /^\d\d:/.test(m) ? `at ${m}` : /^\d/.test(m) ? `on ${m}` : m }

const own = (reason: string) => /document's ttl/.test(reason)

function second(e: Explained & { now: number }, doc: Doc | undefined): string {
  if (!e.found) return 'It may have gone already, or never been there.'
  if (e.heldUpBy) return `Held up by: ${e.heldUpBy}.`
  if (!e.expires) return (e.rules ?? []).map(r => r.reason).join('; ') || 'Make a rule in the Expiry tab to have it go.'
  if (e.notes?.length) return e.notes[0]
  const others = (e.rules ?? []).filter(r => r.deadline !== undefined && r.deadline !== e.deadline)
  if (others.length) return `By ${others.map(r => r.index ?? r.field).join(', ')} alone it would go ${relative(others[0].deadline!, e.now)}.`
  return doc ? `Last changed ${relative(e.lastModified!, e.now)}.` : ''
}

/** The line of time. Stretches are drawn by how long they are, roughly: a year must not make a minute invisible. */
function Life(p: { e: Explained & { now: number }; id: Value }) {
  const { e } = p
  const points: { at: number; name: string; tone: string; r: number }[] = []
  if (p.id instanceof ObjectId) points.push({ at: parseInt(p.id.hex.slice(0, 8), 16) * 1000, name: 'made', tone: 'var(--water-bar)', r: 6 })
  if (e.lastModified !== undefined && !points.some(x => Math.abs(x.at - e.lastModified!) < 1500)) points.push({ at: e.lastModified, name: 'changed', tone: 'var(--water-bar)', r: 6 })
  points.push({ at: e.now, name: 'now', tone: 'var(--water-bar)', r: 4 })
  for (const r of e.rules ?? []) {
    if (r.deadline === undefined) continue
    const first = r.deadline === e.deadline
    points.push({ at: r.deadline, name: first ? r.deadline <= e.now ? 'was to go' : 'goes' : r.index ?? r.field, tone: first ? r.deadline <= e.now ? 'var(--late-bar)' : 'var(--soon-bar)' : 'var(--never-bar)', r: 6 })
  }
  points.sort((a, b) => a.at - b.at)
  const weights = points.slice(1).map((x, i) => 1.2 + Math.log10(1 + Math.max(0, x.at - points[i].at) / minute))
  const total = weights.reduce((a, b) => a + b, 0) || 1
  let sum = 0
  const x = points.map((_, i) => 110 + (i === 0 ? 0 : (sum += weights[i - 1])) / total * 900)
  const at = (name: string) => { const i = points.findIndex(q => q.name === name); return i < 0 ? null : x[i] }
  const nowX = at('now')!, goes = at('goes') ?? at('was to go'), from = at('changed') ?? at('made')
  const rule = e.rules?.find(r => r.deadline === e.deadline)
  const start = Math.min(...x)
  const label = points.map(q => `${q.name} ${iso(q.at)}`).join(', ')
  return <svg class="pic" viewBox="0 0 1120 124" role="img" aria-label={`The line of its life: ${label}`}>
    <line x1={20} x2={1100} y1={58} y2={58} stroke="var(--line)" stroke-width={2} />
    <line x1={start} x2={nowX} y1={58} y2={58} stroke="var(--water-bar)" stroke-width={4} stroke-linecap="round" />
    {goes !== null && goes > nowX && <line x1={nowX} x2={goes} y1={58} y2={58} stroke="var(--water-bar)" stroke-width={4} stroke-dasharray="3 7" opacity={.7} />}
    {!e.expires && <><line x1={nowX} x2={1090} y1={58} y2={58} stroke="var(--water-bar)" stroke-width={4} stroke-dasharray="3 7" opacity={.5} /><text class="ink" x={1096} y={36} text-anchor="end">stays</text></>}
    {points.map((q, i) => <g key={i}><circle cx={x[i]} cy={58} r={q.r} fill={q.tone} stroke="var(--panel)" stroke-width={2} /><text class="ink" x={x[i]} y={36} text-anchor="middle" style={{ fontSize: '12.5px' }}>{q.name}</text>
      <text x={x[i]} y={85} text-anchor="middle">{moment(q.at, e.now)}</text></g>)}
    {rule && rule.field === '_ts' && from !== null && goes !== null && goes > from && <><path d={`M${from} 96 C ${from + (goes - from) * .3} 114, ${goes - (goes - from) * .3} 114, ${goes} 96`} fill="none" stroke="var(--soon-bar)" stroke-width={1.5} />
      <text x={(from + goes) / 2} y={121} text-anchor="middle" style={{ fill: 'var(--soon)' }}>{own(rule.reason) ? `its own ttl: ${span(rule.deadline! - e.lastModified!)}` : ttlWords(rule.expireAfterSeconds)}</text></>}
  </svg>
}

