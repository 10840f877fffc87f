// The documents of a collection: found, sorted, shown with when they go, changed one by one and in bulk, exported.
import { useEffect, useMemo, useRef, useState } from 'preact/hooks'
import { now as serverNow, run, runDoc, words } from '../api'
import { DateTime, Int32, isDoubled, keyOf, parse, parseDoc, plain, toJSON, toLines, toText, type Doc, type Input, type Value } from '../ejson'
import { badge, explainMany, status, type Explained, type Rule } from '../expiry'
import { collection, place, setQuery } from '../router'
import { useLoad } from '../store'
import { count, exact, iso, moment, plural } from '../time'
import { keepFor, keptWords, pinWhere, written } from '../rescue'
import { Badge, Bone, Cell, Confirm, Dialog, Fault, Json, Panel, save, say, Segments } from '../parts/ui'
import { Editor } from '../parts/editor'
import { KeepDialog } from './why'
import type { Part } from './collection'

const batch = 100, rowHeight = 38
/** How many documents are kept in the page; who wants to see more narrows the filter. */
const maxRows = 50_000
/** How many documents an export has at most. */
const maxExport = 200_000

const emptyPipe = '[\n  \n]'

interface Query { command: { [key: string]: Input }; coll: string }

/** What the address asks for, as a command; or what is wrong with it. */
function queryOf(name: string, q: URLSearchParams): { query?: Query; filter?: Doc; fault?: string } {
  try {
    if (q.get('mode') === 'aggregate') {
      const pipeline = (q.get('pipe') ?? '').trim() === '' ? [] : parse(q.get('pipe')!)
      if (!Array.isArray(pipeline)) return { fault: 'A pipeline is a list of stages: [ { … }, { … } ]' }
      return { query: { coll: name, command: { aggregate: name, pipeline, cursor: { batchSize: batch } } } }
    }
    const filter = parseDoc(q.get('q') ?? ''), sort = parseDoc(q.get('sort') ?? ''), fields = parseDoc(q.get('fields') ?? '')
    const from = q.get('goesFrom'), until = q.get('goesUntil')
    if (from !== null || until !== null || q.get('by') === 'deadline') {
      const stage: Record<string, Input> = {}
      if (from !== null) stage.from = new DateTime(Number(from))
      if (until !== null) stage.until = new DateTime(Number(until))
      if (q.get('goesBy')) stage.index = q.get('goesBy')!
      const pipeline: Input[] = [{ $ebbTTL: stage }, { $replaceRoot: { newRoot: '$document' } }]
      if (filter.size) pipeline.push({ $match: filter })
      if (fields.size) pipeline.push({ $project: fields })
      return { filter, query: { coll: name, command: { aggregate: name, pipeline, cursor: { batchSize: batch } } } }
    }
    return { filter, query: { coll: name, command: { find: name, filter, ...(sort.size ? { sort } : {}), ...(fields.size ? { projection: fields } : {}), batchSize: batch } } }
  } catch (e) { return { fault: words(e) } }
}

/** Reads a cursor as far as somebody looks. */
function useRows(db: string, name: string, query: Query | undefined) {
  const key = query ? toJSON(query.command) : ''
  const [state, set] = useState<{ key: string; rows: Doc[]; end: boolean; fault: string; millis: number }>({ key: '', rows: [], end: false, fault: '', millis: 0 })
  const cursor = useRef<Value | null>(null)
  const busy = useRef(false)
  const [turn, setTurn] = useState(0)
  const alive = useRef('')
  useEffect(() => {
    if (!query) return
    const mine = key + ' ' + turn
    alive.current = mine
    const abort = new AbortController()
    busy.current = true
    const began = performance.now()
    runDoc(db, query.command, abort.signal).then(r => {
      if (alive.current !== mine) return
      const c = r.get('cursor') as Doc
      cursor.current = Number(plain(c.get('id'))) === 0 ? null : c.get('id')!
      set({ key, rows: c.get('firstBatch') as Doc[], end: cursor.current === null, fault: '', millis: performance.now() - began })
    }).catch(e => { if (!abort.signal.aborted) set({ key, rows: [], end: true, fault: words(e), millis: 0 }) }).finally(() => { if (alive.current === mine) busy.current = false })
    return () => {
      abort.abort()
      alive.current = ''
      if (cursor.current !== null) void run(db, { killCursors: name, cursors: [cursor.current] }).catch(() => {})
      cursor.current = null
    }
  }, [key, turn])
  const more = async () => {
    if (busy.current || cursor.current === null || state.key !== key || state.rows.length >= maxRows) return
    busy.current = true
    const mine = alive.current
    try {
      const c = (await runDoc(db, { getMore: cursor.current, collection: name, batchSize: batch * 5 })).get('cursor') as Doc
      if (alive.current !== mine) return
      cursor.current = Number(plain(c.get('id'))) === 0 ? null : c.get('id')!
      const next = c.get('nextBatch') as Doc[]
      set(s => ({ ...s, rows: s.rows.concat(next), end: cursor.current === null }))
    } catch (e) {
      if (alive.current === mine) set(s => ({ ...s, end: true, fault: words(e) }))
    } finally { busy.current = false }
  }
  return { ...state, loading: state.key !== key, more, again: () => setTurn(t => t + 1) }
}

export function Documents(p: Part) {
  const q = place.value.query
  const mode = q.get('mode') === 'aggregate' ? 'aggregate' : 'find'
  const [filterText, setFilter] = useState(q.get('q') ?? ''), [sortText, setSort] = useState(q.get('sort') ?? ''), [fieldsText, setFields] = useState(q.get('fields') ?? ''), [pipeText, setPipe] = useState(q.get('pipe') ?? emptyPipe)
  const [more, setMore] = useState(q.has('sort') || q.has('fields'))
  useEffect(() => { setFilter(q.get('q') ?? ''); setSort(q.get('sort') ?? ''); setFields(q.get('fields') ?? '') }, [q.get('q'), q.get('sort'), q.get('fields')])
  const { query, filter, fault } = useMemo(() => queryOf(p.name, q), [q.toString()])
  const rows = useRows(p.db, p.name, query)
  const st = useLoad('doc rules ' + p.ns, s => p.isView ? Promise.resolve(null) : status(p.db, p.name, s).catch(() => null), 20_000)
  const rules = st.data?.indexes.filter(r => !r.inert) ?? []
  const goes = q.has('goesFrom') || q.has('goesUntil'), dead = goes || q.get('by') === 'deadline'
  // What goes, in its order, is less than the filter finds: it has no number, and nothing can be done to all of it.
  const total = useLoad(`total ${p.ns} ${q.get('q')} ${mode} ${dead}`, async s => mode === 'aggregate' || dead || !filter ? null : (await run(p.db, { count: p.name, query: filter, maxTimeMS: 3000 }, s)).n as number, 15_000)
  const find = () => {
    if (mode === 'aggregate') setQuery({ pipe: pipeText.trim(), doc: undefined }, true)
    else setQuery({ q: filterText.trim(), sort: sortText.trim(), fields: fieldsText.trim(), doc: undefined }, true)
    rows.again()
  }
  const paths = useMemo(() => pathsOf(rows.rows.slice(0, 100)), [rows.rows.length > 0 ? rows.rows[0] : null])
  return <>{p.crumb}
    <h1>{p.name}</h1>{p.bar}
    <div class="bar" style={{ alignItems: 'flex-start' }}>
      <Segments label="What to ask" value={mode} options={[['find', 'Find'], ['aggregate', 'Aggregate']]} onChange={m => setQuery({ mode: m === 'find' ? undefined : m })} />
      {mode === 'find' ? <Editor key="filter" kind="filter" label="filter" value={q.get('q') ?? ''} hint="{ total: { $gt: 100 } }" fields={paths} onChange={setFilter} onRun={find} bad={!!fault} />
        : <Editor key="pipe" kind="pipeline" label="pipeline" lines value={q.get('pipe') ?? emptyPipe} fields={paths} onChange={setPipe} onRun={find} bad={!!fault} />}
      {mode === 'find' && <button class="btn" aria-expanded={more} onClick={() => setMore(!more)}>Fields and sort</button>}
      {mode === 'find' && rules.length > 0 && !rules.some(r => r.timeseries) && <button class="btn" aria-pressed={dead} title="In the order in which they go" onClick={() => setQuery({ by: dead ? undefined : 'deadline', goesFrom: undefined, goesUntil: undefined, goesBy: undefined }, true)}>{dead ? 'By deadline ✓' : 'By deadline'}</button>}
      <button class="btn p" onClick={find}>{mode === 'find' ? 'Find' : 'Run'}</button>
    </div>
    {mode === 'find' && more && <div class="bar"><span class="muted">fields</span><Editor kind="filter" label="fields" value={q.get('fields') ?? ''} hint="{ user: 1, total: 1 }" fields={paths} onChange={setFields} onRun={find} /><span class="muted">sort</span>
      <Editor kind="filter" label="sort" value={q.get('sort') ?? ''} hint="{ total: -1 }" fields={paths} onChange={setSort} onRun={find} /></div>}
    {goes && <p class="note">What goes {q.has('goesFrom') ? `from ${moment(Number(q.get('goesFrom')), serverNow())} ` : ''}{q.has('goesUntil') ? `to ${moment(Number(q.get('goesUntil')), serverNow())}` : 'on'}{q.get('goesBy') ? ` by ${q.get('goesBy')}` : ''}, in this order. <button class="link" onClick={() => setQuery({ goesFrom: undefined, goesUntil: undefined, goesBy: undefined }, true)}>Show all</button></p>}
    <Fault text={fault ?? rows.fault} />
    <Rows {...p} key={query ? toJSON(query.command) : ''} rows={rows} rules={rules} total={total.data ?? null} filter={filter ?? new Map()} simple={mode === 'find'} goes={goes} onChanged={() => { rows.again(); total.again() }} />
  </>
}

/** The paths of fields in some documents, two levels deep, for completion. */
function pathsOf(docs: Doc[]): string[] {
  const out = new Set<string>()
  for (const d of docs) for (const [k, v] of d) {
    out.add(k)
    const inner = v instanceof Map ? v : Array.isArray(v) && v[0] instanceof Map ? v[0] as Doc : null
    if (inner) for (const k2 of inner.keys()) out.add(`${k}.${k2}`)
  }
  return [...out].slice(0, 300)
}

type Reading = ReturnType<typeof useRows>

function Rows(p: Part & { rows: Reading; rules: Rule[]; total: number | null; filter: Doc; simple: boolean; goes: boolean; onChanged: () => void }) {
  const { rows } = p.rows
  const box = useRef<HTMLDivElement>(null)
  const [top, setTop] = useState(0)
  const [height, setHeight] = useState(600)
  const [picked, pick] = useState<Set<string>>(new Set())
  const [everything, setEverything] = useState(false)
  const [doing, doIt] = useState<'' | 'keep' | 'delete' | 'pin' | 'export' | 'insert'>('')
  const editable = p.simple && !p.isView && !p.rules.some(r => r.timeseries)
  const columns = useMemo(() => {
    const seen = new Map<string, number>()
    for (const d of rows.slice(0, 100)) for (const k of d.keys()) if (k !== '_id') seen.set(k, (seen.get(k) ?? 0) + 1)
    return [...seen].sort((a, b) => b[1] - a[1]).slice(0, 6).map(x => x[0])
  }, [rows.length > 0 ? rows[0] : null])
  const hasId = rows.some(d => d.has('_id'))
  const shows = p.simple && p.rules.length > 0
  const first = Math.max(0, Math.floor(top / rowHeight) - 8), last = Math.min(rows.length, first + Math.ceil(height / rowHeight) + 16)
  useEffect(() => {
    const el = box.current!
    const r = new ResizeObserver(() => setHeight(el.clientHeight))
    r.observe(el)
    return () => r.disconnect()
  }, [])
  useEffect(() => { if (!p.rows.end && last > rows.length - batch) void p.rows.more() }, [last, rows.length, p.rows.end])
  const explained = useExplained(p, rows[0] ?? null, shows ? rows.slice(first, last) : [])
  const open = place.value.query.get('doc')
  const opened = open === null ? undefined : rows.find(d => d.has('_id') && keyOf(d.get('_id')!) === open)
  const sort = place.value.query.get('sort') ?? ''
  const by = (k: string) => {
    const asked = `{ ${/^[A-Za-z_$][\w$]*$/.test(k) ? k : JSON.stringify(k)}: `
    setQuery({ sort: sort === asked + '1 }' ? asked + '-1 }' : asked + '1 }', by: undefined }, true)
  }
  const n = everything ? p.total ?? 0 : picked.size
  const target = (): Input => everything ? p.filter : { _id: { $in: [...picked].map(k => parse(k)) } }
  const done = async <T,>(what: Promise<T>, how: (x: T) => { text: string; bad?: boolean }) => {
    try {
      const { text, bad } = how(await what)
      say(text, bad)
      pick(new Set())
      setEverything(false)
      p.onChanged()
    } catch (e) { say(words(e), true) }
    doIt('')
  }
  const of = (n: number) => `${exact(n)} ${plural(n, 'document')}`
  const toggle = (k: string) => { setEverything(false); const next = new Set(picked); if (!next.delete(k)) next.add(k); pick(next) }
  const span = columns.length + (hasId ? 1 : 0) + (shows ? 1 : 0) + (editable ? 1 : 0)
  return <>
    <Panel class="flush"><div class="docs-box" ref={box} tabIndex={0} role="region" aria-label="Documents" onScroll={e => setTop(e.currentTarget.scrollTop)}>
      <table class="docs" aria-rowcount={p.total ?? -1}><thead><tr>
        {editable && <th class="pick"><input type="checkbox" aria-label="Select all that are loaded" checked={rows.length > 0 && picked.size === rows.length} onChange={e => { setEverything(false); pick(e.currentTarget.checked ? new Set(rows.map(d => keyOf(d.get('_id') ?? null))) : new Set()) }} /></th>}
        {hasId && <th style={{ width: '21%' }}>_id</th>}{columns.map(c => <th key={c} aria-sort={sort.includes(c) ? sort.includes('-1') ? 'descending' : 'ascending' : undefined}>{p.simple ? <button onClick={() => by(c)} title={`Sort by ${c}`}>{c}{sort.startsWith(`{ ${c}:`) ? sort.includes('-1') ? ' ↓' : ' ↑' : ''}</button> : c}</th>)}{shows && <th style={{ width: '190px' }}>goes</th>}
      </tr></thead><tbody>
        {p.rows.loading && !p.rows.fault && Array.from({ length: 8 }, (_, i) => <tr key={i}>{Array.from({ length: Math.max(4, span) }, (_, k) => <td key={k}><Bone w="70%" /></td>)}</tr>)}
        {first > 0 && <tr class="spacer" aria-hidden="true"><td colSpan={Math.max(1, span)} style={{ height: `${first * rowHeight}px` }} /></tr>}
        {!p.rows.loading && rows.slice(first, last).map((d, i) => {
          const id = d.get('_id'), k = id === undefined ? '' : keyOf(id)
          const e = explained.get(k)
          const b = e ? badge(e, serverNow()) : null
          return <tr key={first + i} aria-rowindex={first + i + 2} aria-selected={picked.has(k) || everything} onClick={() => setQuery({ doc: k || undefined }, true)}>
            {editable && <td class="pick" onClick={ev => ev.stopPropagation()}><input type="checkbox" aria-label={`Select ${id === undefined ? 'it' : toText(id, 60)}`} checked={picked.has(k) || everything} onChange={() => toggle(k)} /></td>}
            {hasId && <td class="mono"><button class="link mono" style={{ textDecoration: 'none', color: 'inherit' }} onClick={ev => { ev.stopPropagation(); setQuery({ doc: k }, true) }}><Cell value={id} /></button></td>}
            {columns.map(c => <td key={c}><Cell value={d.get(c)} /></td>)}
            {shows && <td>{b ? <a href={collection(p.ns, 'why', { id: k })} onClick={ev => ev.stopPropagation()}><Badge tone={b.tone} title={b.title}>{b.text}</Badge></a> : <Bone w="100px" />}</td>}
          </tr>
        })}
        {last < rows.length && <tr class="spacer" aria-hidden="true"><td colSpan={Math.max(1, span)} style={{ height: `${(rows.length - last) * rowHeight}px` }} /></tr>}
      </tbody></table>
      {!p.rows.loading && rows.length === 0 && !p.rows.fault && <p class="empty">{p.goes ? 'None that can be seen goes in this time.' : 'No document is found.'}</p>}
    </div></Panel>
    <div class="bar">
      <span class="muted grow">{p.rows.loading ? '' : <>{n > 0 && <><b>{exact(n)}</b> of </>}{p.total !== null ? <span title={exact(p.total)}>{exact(p.total)} {plural(p.total, 'document')}</span> : `${exact(rows.length)}${p.rows.end ? '' : ' and more'} ${plural(rows.length, 'document')}`}{n > 0 ? ' selected' : p.rows.rows.length < (p.total ?? 0) ? ` · ${exact(rows.length)} loaded` : ''}
        {n === 0 && p.rows.millis > 0 && <span class="faint"> · {p.rows.millis < 10 ? p.rows.millis.toFixed(1) : Math.round(p.rows.millis)} ms</span>}
        {rows.length >= maxRows && ' · no more are shown; narrow the filter'}
        {editable && n > 0 && !everything && p.total !== null && p.total > n && <> · <button class="link" onClick={() => setEverything(true)}>select all {exact(p.total)}</button></>}</>}</span>
      {editable && n === 0 && <button class="btn" onClick={() => doIt('insert')}>Insert</button>}
      {n > 0 && p.rules.length > 0 && <button class="btn" onClick={() => doIt('keep')}>Keep for…</button>}
      {n > 0 && p.rules.some(r => r.field === '_ts') && <button class="btn" onClick={() => doIt('pin')}>Pin</button>}
      <button class="btn" onClick={() => doIt('export')}>Export</button>
      {n > 0 && <button class="btn d" onClick={() => doIt('delete')}>Delete</button>}
    </div>
    {doing === 'keep' && <KeepDialog rules={p.rules} n={n} onClose={() => doIt('')} onKeep={s => void done(keepFor(p.db, p.name, target(), p.rules, s), k => keptWords(of(k.n), k, s))} />}
    {doing === 'pin' && <Dialog title={`Pin ${of(n)}`} onClose={() => doIt('')}><p>Sets <code>ttl</code> to −1: {n === 1 ? 'it does' : 'they do'} not go by the rule of the last change any more.</p>
      {p.rules.some(r => r.field !== '_ts') && <p class="note soon">By {p.rules.filter(r => r.field !== '_ts').map(r => r.index ?? r.field).join(', ')} {n === 1 ? 'it goes' : 'they go'} all the same, where there is a date.</p>}
      <div class="bar"><button class="btn p" onClick={() => void done(pinWhere(p.db, p.name, target()), k => ({ text: `${of(k)} pinned` }))}>Pin</button><button class="btn" onClick={() => doIt('')}>Leave as it is</button></div></Dialog>}
    {doing === 'delete' && <Dialog title={`Delete ${of(n)}`} onClose={() => doIt('')}><p>This cannot be taken back.</p><Confirm ask={String(n)} label="Delete" onCancel={() => doIt('')} onConfirm={() => void done(run(p.db, { delete: p.name, deletes: [{ q: target(), limit: 0 }] }).then(written), k => ({ text: `${of(k)} deleted` }))} /></Dialog>}
    {doing === 'export' && <Export part={p} picked={n > 0 && !everything ? rows.filter(d => picked.has(keyOf(d.get('_id') ?? null))) : null} onClose={() => doIt('')} />}
    {doing === 'insert' && <Edit part={p} onClose={() => doIt('')} onDone={p.onChanged} />}
    {opened && <Edit key={open!} part={p} doc={opened} readOnly={!editable || place.value.query.has('fields') || isDoubled(opened)} explained={explained.get(open!)} onClose={() => setQuery({ doc: undefined })} onDone={p.onChanged} />}
  </>
}

/** A number for each reading: the objects of another one are others. */
const versions = new WeakMap<Doc, number>()
let latest = 0
const versionOf = (d: Doc): number => {
  if (!versions.has(d)) versions.set(d, ++latest)
  return versions.get(d)!
}

/** What is known of when the documents that are seen go. */
function useExplained(p: { db: string; name: string; rules: Rule[] }, reading: Doc | null, seen: Doc[]): Map<string, Explained> {
  const [known, set] = useState(new Map<string, Explained>())
  const [, tick] = useState(0)
  const asked = useRef(new Set<string>())
  const read = useRef(reading)
  if (read.current !== reading) { // they were read anew, and may have changed
    read.current = reading
    asked.current.clear()
  }
  const wanted = seen.filter(d => d.has('_id')).map(d => d.get('_id')!)
  const missing = wanted.filter(id => !asked.current.has(keyOf(id)))
  const key = missing.map(keyOf).join(' ') + (reading === null ? '' : versionOf(reading))
  useEffect(() => {
    if (missing.length === 0) return
    const t = setTimeout(async () => {
      missing.forEach(id => asked.current.add(keyOf(id)))
      try {
        const found = await explainMany(p.db, p.name, missing)
        set(k => new Map([...k, ...found]))
      } catch { /* there are no badges then */ }
    }, 60)
    return () => clearTimeout(t)
  }, [key])
  useEffect(() => {
    const t = setInterval(() => tick(n => n + 1), 1000)
    return () => clearInterval(t)
  }, [])
  useEffect(() => { asked.current.clear() }, [p.rules.map(r => `${r.index}${r.expireAfterSeconds}${r.paused}`).join()])
  return known
}

function Edit(p: { part: Part; doc?: Doc; readOnly?: boolean; explained?: Explained; onClose: () => void; onDone: () => void }) {
  const before = p.doc ? toLines(p.doc) : '{\n  \n}'
  const [text, setText] = useState(before)
  const [editing, edit] = useState(!p.doc)
  const [fault, setFault] = useState('')
  const [asking, ask] = useState(false)
  const id = p.doc?.get('_id')
  const run_ = async (what: () => Promise<void>, done: string) => {
    setFault('')
    try {
      await what()
      say(done)
      p.onClose()
      p.onDone()
    } catch (e) { setFault(words(e)) }
  }
  const saveIt = () => run_(async () => {
    const v = parse(text)
    if (!p.doc) {
      written(await run(p.part.db, { insert: p.part.name, documents: Array.isArray(v) ? v : [v] }))
      return
    }
    if (!(v instanceof Map)) throw new Error('a document is needed: { … }')
    // Only if it is still what was shown: what somebody else has written meanwhile is not lost.
    const n = written(await run(p.part.db, { update: p.part.name, updates: [{ q: { _id: id!, $expr: { $eq: ['$$ROOT', { $literal: p.doc }] } }, u: v, multi: false }] }))
    if (n === 0) throw new Error('It was changed or deleted meanwhile. Close this, and look again.')
  }, p.doc ? 'It is saved' : 'It is inserted')
  const b = p.explained ? badge(p.explained, serverNow()) : null
  return <Dialog big title={p.doc ? `Document ${id === undefined ? '' : toText(id, 60)}` : 'Insert documents'} onClose={p.onClose}>
    {b && <div class="bar"><a href={collection(p.part.ns, 'why', { id: keyOf(id!) })}><Badge tone={b.tone} title={b.title}>{b.text}</Badge></a><a class="faint" href={collection(p.part.ns, 'why', { id: keyOf(id!) })}><u>why</u></a></div>}
    {editing ? <Editor kind="document" label="document" lines tall value={before} onChange={setText} onRun={saveIt} bad={!!fault} /> : <div style={{ maxHeight: '56vh', overflow: 'auto' }} tabIndex={0} role="region" aria-label="The document"><Json text={before} /></div>}
    {p.doc && isDoubled(p.doc) && <p class="note soon">A field is there twice; the first is shown. Here such a document is not changed.</p>}
    {!p.doc && <p class="faint">One document, or a list of them. Keys need no quotes; ObjectId(…), ISODate(…), Long(…) are known.</p>}
    <Fault text={fault} />
    {asking ? <Confirm ask="1" label="Delete it" onCancel={() => ask(false)} onConfirm={() => void run_(async () => { written(await run(p.part.db, { delete: p.part.name, deletes: [{ q: { _id: id! }, limit: 1 }] })) }, 'It is deleted')} />
      : <div class="bar">{editing ? <button class="btn p" onClick={saveIt}>{p.doc ? 'Save' : 'Insert'}</button> : !p.readOnly && <button class="btn p" onClick={() => edit(true)}>Edit</button>}
        {!editing && <button class="btn" onClick={() => void navigator.clipboard.writeText(before).then(() => say('Copied'))}>Copy</button>}
        {p.doc && !p.readOnly && !editing && <button class="btn" onClick={() => ask(true)}>Delete</button>}
        <span class="grow" /><button class="btn" onClick={p.onClose}>Close</button></div>}
  </Dialog>
}

function Export(p: { part: Part; picked: Doc[] | null; onClose: () => void }) {
  const [done, setDone] = useState<number | null>(null)
  const stop = useRef(false)
  useEffect(() => () => { stop.current = true }, [])
  const go = async (kind: 'json' | 'csv') => {
    setDone(0)
    try {
      let docs = p.picked
      if (!docs) {
        const { query } = queryOf(p.part.name, place.value.query)
        docs = []
        let reply = await runDoc(p.part.db, query!.command)
        for (;;) {
          const c = reply.get('cursor') as Doc
          docs = docs.concat((c.get('firstBatch') ?? c.get('nextBatch')) as Doc[])
          setDone(docs.length)
          const id = c.get('id')!
          if (Number(plain(id)) === 0) break
          if (stop.current || docs.length >= maxExport) {
            void run(p.part.db, { killCursors: p.part.name, cursors: [id] })
            break
          }
          reply = await runDoc(p.part.db, { getMore: id, collection: p.part.name, batchSize: 2000 })
        }
        if (stop.current) return
      }
      if (kind === 'json') save(`${p.part.ns}.json`, 'application/x-ndjson', docs.map(d => toJSON(d) + '\n'))
      else save(`${p.part.ns}.csv`, 'text/csv', csv(docs))
      say(`${exact(docs.length)} ${plural(docs.length, 'document')} exported`)
    } catch (e) { say(words(e), true) }
    p.onClose()
  }
  return <Dialog title={p.picked ? `Export ${exact(p.picked.length)} ${plural(p.picked.length, 'document')}` : 'Export what is found'} onClose={p.onClose}>
    <p class="muted">JSON is extended JSON, a line a document, as mongoimport takes it. CSV has a column a field. {p.picked ? '' : `At most ${count(maxExport)} documents; for more use mongodump.`}</p>
    {done !== null ? <p aria-live="polite">{exact(done)} read…</p> : <div class="bar"><button class="btn p" onClick={() => void go('json')}>JSON</button><button class="btn p" onClick={() => void go('csv')}>CSV</button><button class="btn" onClick={p.onClose}>Close</button></div>}
  </Dialog>
}

function csv(docs: Doc[]): string[] {
  const columns = [...new Set(docs.flatMap(d => [...d.keys()]))]
  const quote = (s: string) => /[",\n\r]/.test(s) ? '"' + s.replaceAll('"', '""') + '"' : s
  const text = (v: Value | undefined) => v === undefined || v === null ? '' : typeof v === 'string' ? v : v instanceof Int32 ? String(v.n) : v instanceof DateTime ? iso(v.ms) : toText(v).replace(/^(?:ObjectId|Long|Decimal128|UUID)\("(.*)"\)$/, '$1')
  return [columns.map(quote).join(',') + '\r\n', ...docs.map(d => columns.map(c => quote(text(d.get(c)))).join(',') + '\r\n')]
}
