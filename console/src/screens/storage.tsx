// What takes how much room: databases, collections, their indexes.
import { useMemo } from 'preact/hooks'
import { run } from '../api'
import { collection, place, setQuery } from '../router'
import { allStats, collections, readCollections, useLoad } from '../store'
import { bytes, count, exact, plural } from '../time'
import { Bone, Fault, Panel } from '../parts/ui'

interface Row { ns: string; count: number; size: number; storage: number; indexes: [string, number][]; indexSize: number; avg: number; capped: boolean }

/** How many rows are drawn before somebody asks for more. */
const maxShown = 200

type Order = 'total' | 'count' | 'size' | 'indexSize' | 'ns'

export function Storage() {
  const q = place.value.query
  const order = (q.get('by') ?? 'total') as Order
  const open = q.get('open'), text = q.get('q') ?? '', show = Number(q.get('rows') ?? maxShown)
  const rows = useLoad(`storage ${collections.value === null}`, async s => {
    if (collections.peek() === null) await readCollections()
    return (await allStats('storageStats', collections.peek() ?? [], s)).map((d): Row => {
      const r = d.storageStats
      return { ns: d.ns, count: r.count ?? r.timeseries?.numMeasurementsCommitted ?? 0, size: r.size, storage: r.storageSize, avg: r.avgObjSize ?? 0, indexes: Object.entries(r.indexSizes ?? {}) as [string, number][], indexSize: r.totalIndexSize, capped: !!r.capped }
    })
  }, 60_000, 40)
  const disk = useLoad('storage.disk', s => run('admin', { dbStats: 1 }, s), 60_000)
  const all = rows.data ?? []
  const total = (r: Row) => r.storage + r.indexSize
  const sorted = useMemo(() => [...all].sort((a, b) => order === 'ns' ? a.ns.localeCompare(b.ns) : order === 'total' ? total(b) - total(a) : b[order] - a[order]).filter(r => r.ns.toLowerCase().includes(text.toLowerCase())), [rows.data, order, text])
  const sum = all.reduce((n, r) => n + total(r), 0), most = Math.max(1, ...all.map(total))
  const d = disk.data
  const head = (k: Order, text: string) => <th class={k === 'ns' ? '' : 'r'} aria-sort={order === k ? 'descending' : undefined}><button onClick={() => setQuery({ by: k === 'total' ? undefined : k })}>{text}{order === k ? ' ↓' : ''}</button></th>
  return <>
    <h1>{rows.data ? `${exact(all.length)} ${plural(all.length, 'collection')} take ${bytes(sum)}.` : rows.fault ? 'The sizes cannot be read.' : <Bone w="340px" h={26} />}</h1>
    <p class="lead">{d?.fsTotalSize ? `The disk has ${bytes(d.fsTotalSize - d.fsUsedSize)} free of ${bytes(d.fsTotalSize)}. ` : ''}Sizes on disk are after compression; documents are as they are read.</p>
    <Fault text={rows.fault} />
    {all.length > 20 && <div class="bar"><input class="grow" type="search" aria-label="Show only collections called" placeholder="Filter by name" value={text} onInput={e => setQuery({ q: e.currentTarget.value })} /></div>}
    <Panel class="flush hover"><div class="scroll"><table><thead><tr>{head('ns', 'collection')}{head('count', 'documents')}{head('size', 'of documents')}<th class="r">a document</th><th class="r">on disk</th>{head('indexSize', 'indexes')}{head('total', 'in all')}<th style={{ width: '18%' }}><span class="sr">share</span></th></tr></thead><tbody>
      {!rows.data && [0, 1, 2].map(i => <tr key={i}><td colSpan={8}><Bone /></td></tr>)}
      {sorted.slice(0, show).flatMap(r => [<tr key={r.ns}><td><a href={collection(r.ns, 'indexes')}>{r.ns}</a>{r.capped && <span class="faint"> capped</span>}</td><td class="r" title={exact(r.count)}>{count(r.count)}</td><td class="r" title={exact(r.size) + ' bytes'}>{bytes(r.size)}</td><td class="r muted">{bytes(r.avg)}</td><td class="r">{bytes(r.storage)}</td>
        <td class="r"><button class="link" aria-expanded={open === r.ns} aria-label={`Indexes of ${r.ns}: ${bytes(r.indexSize)}`} onClick={() => setQuery({ open: open === r.ns ? undefined : r.ns })}>{bytes(r.indexSize)}</button></td><td class="r"><b style={{ fontWeight: 550 }}>{bytes(total(r))}</b></td>
        <td><div class="share" role="img" aria-label={`${Math.round(total(r) / Math.max(1, sum) * 100)} % of all`}><i style={{ width: `${total(r) / most * 100}%` }} /></div></td></tr>,
        ...(open !== r.ns ? [] : r.indexes.map(([n, b]) => <tr key={`${r.ns} ${n}`} class="inner"><td colSpan={5}>index <code>{n}</code></td><td class="r" title={exact(b) + ' bytes'}>{bytes(b)}</td><td /><td><div class="share"><i style={{ width: `${b / most * 100}%` }} /></div></td></tr>))])}
    </tbody></table>{rows.data && all.length === 0 && <p class="empty">There is nothing yet.</p>}{rows.data && all.length > 0 && sorted.length === 0 && <p class="empty">None is called like that.</p>}</div></Panel>
    {sorted.length > show && <button class="link" onClick={() => setQuery({ rows: show + 500 })}>{exact(sorted.length - show)} more {plural(sorted.length - show, 'collection')}</button>}
  </>
}
