// The indexes of a collection: what they take, how often they are used, making, hiding and dropping them.
import { useState } from 'preact/hooks'
import { all, run, runDoc, words } from '../api'
import { parseDoc, toText, type Doc, type Input } from '../ejson'
import { place, collection, setQuery } from '../router'
import { useLoad } from '../store'
import { bytes, count, exact, plural, span } from '../time'
import { Badge, Bone, Confirm, Dialog, Fault, Panel, say } from '../parts/ui'
import { Editor } from '../parts/editor'
import type { Part } from './collection'

interface Row { name: string; key: Doc; options: [string, string][]; ttl?: number; hidden: boolean; size?: number; ops?: number; since?: number; unique: boolean }

async function read(db: string, name: string, s: AbortSignal): Promise<Row[]> {
  const list = (((await runDoc(db, { listIndexes: name }, s)).get('cursor') as Doc).get('firstBatch') as Doc[])
  const [stats, usage] = await Promise.all([run(db, { collStats: name }, s).catch(() => ({})), all(db, { aggregate: name, pipeline: [{ $indexStats: {} }], cursor: {} }, 1000, s).catch(() => [])])
  return list.map(d => {
    const n = d.get('name') as string
    const use = usage.find((u: any) => u.name === n)
    const ttl = d.get('expireAfterSeconds')
    return {
      name: n, key: d.get('key') as Doc, hidden: d.get('hidden') === true, unique: d.get('unique') === true, ttl: ttl === undefined ? undefined : Number((ttl as any).n), size: stats.indexSizes?.[n], ops: use?.accesses.ops, since: use?.accesses.since,
      options: [...d].filter(([k]) => !['v', 'key', 'name', 'ns', 'hidden', 'unique', 'expireAfterSeconds'].includes(k)).map(([k, v]) => [k, toText(v, 120)]),
    }
  })
}

export function Indexes(p: Part) {
  const list = useLoad('indexes ' + p.ns, s => read(p.db, p.name, s), 10_000)
  const [dropping, drop] = useState<Row | null>(null)
  const making = place.value.query.get('make')
  const rows = list.data ?? []
  const unused = rows.filter(r => r.name !== '_id_' && r.ttl === undefined && !r.unique && r.ops === 0 && r.since !== undefined && Date.now() - r.since > 24 * 3600e3)
  const size = rows.reduce((n, r) => n + (r.size ?? 0), 0)
  const hide = async (r: Row) => {
    try {
      await run(p.db, { collMod: p.name, index: { name: r.name, hidden: !r.hidden } })
      say(r.hidden ? `${r.name} is used again` : `${r.name} is hidden from queries`)
      list.again()
    } catch (e) { say(words(e), true) }
  }
  return <>{p.crumb}
    <h1>{list.data ? unused.length ? `${exact(unused.length)} ${plural(unused.length, 'index was', 'indexes were')} not used for a day.` : `${exact(rows.length)} ${plural(rows.length, 'index', 'indexes')}, ${bytes(size)}.` : list.fault ? 'The indexes cannot be read.' : <Bone w="260px" h={26} />}</h1>
    {p.bar}<Fault text={list.fault} />
    {making !== null && <Make part={p} start={making} onDone={() => { setQuery({ make: undefined }); list.again() }} onClose={() => setQuery({ make: undefined })} />}
    <Panel class="flush hover"><div class="scroll"><table><thead><tr><th>index</th><th>key</th><th>options</th><th class="r">size</th><th class="r">used</th><th><span class="sr">actions</span></th></tr></thead><tbody>
      {!list.data && !list.fault && <tr><td colSpan={6}><Bone h={40} block /></td></tr>}
      {rows.map(r => <tr key={r.name}><td><b style={{ fontWeight: 550 }}>{r.name}</b></td><td class="mono">{toText(r.key, 200)}</td>
        <td>{r.unique && <Badge>unique</Badge>} {r.ttl !== undefined && <a href={collection(p.ns, 'expiry', { change: r.name })}><Badge tone="water">{r.ttl < 0 ? 'expiry, no default' : `expiry, ${exact(r.ttl)} s`}</Badge></a>} {r.hidden && <Badge tone="held">hidden</Badge>}
          {r.options.map(([k, v]) => <div key={k} class="faint"><code>{k}: {v}</code></div>)}</td>
        <td class="r" title={r.size === undefined ? '' : exact(r.size) + ' bytes'}>{r.size === undefined ? '–' : bytes(r.size)}</td>
        <td class="r" title={r.since ? `since ${new Date(r.since).toISOString()}` : ''}>{r.ops === undefined ? '–' : <>{count(r.ops)} <span class="faint">in {span(Date.now() - (r.since ?? 0))}</span></>}</td>
        <td class="r">{r.name !== '_id_' && <><button class="btn s" onClick={() => void hide(r)} title={r.hidden ? 'Let queries use it again' : 'See how it is without it, before it is dropped'}>{r.hidden ? 'Unhide' : 'Hide'}</button> <button class="btn s" onClick={() => drop(r)} aria-label={`Drop ${r.name}`}>Drop</button></>}</td></tr>)}
    </tbody></table></div></Panel>
    {making === null && <button class="btn" onClick={() => setQuery({ make: '' })}>Make an index</button>}
    {dropping && <Dialog title={`Drop ${dropping.name}`} onClose={() => drop(null)}>
      {dropping.ttl !== undefined ? <p class="warn" style={{ margin: 0 }}>It is a rule of expiry. <a href={collection(p.ns, 'expiry', { change: dropping.name, mode: 'off' })}><u>Switch it off in the Expiry tab</u></a>, which tells what happens to hidden documents.</p>
        : <><p class="muted">Queries that use it are slower from then on. Hiding it first shows how that is.</p><Confirm ask={dropping.name} label="Drop" onCancel={() => drop(null)} onConfirm={async () => {
          try { await run(p.db, { dropIndexes: p.name, index: dropping.name }); say(`${dropping.name} is dropped`); list.again() } catch (e) { say(words(e), true) }
          drop(null)
        }} /></>}</Dialog>}
  </>
}

function Make(p: { part: Part; start: string; onDone: () => void; onClose: () => void }) {
  const [key, setKey] = useState(p.start || '{  }'), [options, setOptions] = useState(''), [fault, setFault] = useState(''), [busy, setBusy] = useState(false), [expires, setExpires] = useState(false)
  const make = async () => {
    setFault('')
    setExpires(false)
    try {
      const k = parseDoc(key), o = parseDoc(options)
      if (o.has('expireAfterSeconds')) {
        setExpires(true)
        return
      }
      if (k.size === 0) throw new Error('Say which fields: { user: 1, at: -1 }')
      setBusy(true)
      const name = o.get('name') ?? [...k].map(([f, v]) => `${f}_${typeof v === 'string' ? v : toText(v)}`).join('_')
      await run(p.part.db, { createIndexes: p.part.name, indexes: [new Map<string, any>([['key', k], ['name', name], ...[...o].filter(([f]) => f !== 'name')]) as Input] })
      say('The index is made')
      p.onDone()
    } catch (e) { setFault(words(e)) }
    setBusy(false)
  }
  return <Panel title="Make an index" aside={<button class="btn s" onClick={p.onClose}>Close</button>}>
    <div class="bar"><span class="muted">key</span><Editor kind="filter" label="key of the index" value={p.start || '{  }'} hint="{ user: 1, at: -1 }" onChange={setKey} onRun={make} /><span class="muted">options</span><Editor kind="filter" label="options of the index" value="" hint="{ unique: true, partialFilterExpression: { … } }" onChange={setOptions} onRun={make} />
      <button class="btn p" disabled={busy} onClick={make}>{busy ? 'Building…' : 'Make'}</button></div>
    <p class="faint">Others read and write meanwhile. A rule of expiry is made in the Expiry tab, which shows first what it would do.</p>
    <Fault text={fault} />
    {expires && <p class="fault" role="alert">An index with expireAfterSeconds is a rule of expiry. <a href={collection(p.part.ns, 'expiry', { change: '' })}><u>Make it in the Expiry tab</u></a>, which shows first what would go.</p>}
  </Panel>
}
