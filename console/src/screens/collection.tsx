// One collection: its documents, its expiry, its indexes, and why its documents go or stay.
import type { JSX } from 'preact'
import { collection, place } from '../router'
import { Tabs } from '../parts/ui'
import { collections } from '../store'
import { Documents } from './documents'
import { Expiry } from './expiry'
import { Indexes } from './indexes'
import { Why } from './why'

/** What the screens of a collection get. */
export interface Part { db: string; name: string; ns: string; isView: boolean; bar: JSX.Element; crumb: JSX.Element }

export function Collection(p: { db: string; name: string; tab: string }) {
  const ns = `${p.db}.${p.name}`
  const isView = collections.value?.find(c => c.ns === ns)?.type === 'view'
  const tabs: [string, string, string][] = [['documents', 'Documents', collection(ns, 'documents')]]
  if (!isView) tabs.push(['expiry', 'Expiry', collection(ns, 'expiry')], ['indexes', 'Indexes', collection(ns, 'indexes')], ['why', 'Why', collection(ns, 'why')])
  const bar = <Tabs label={`Parts of ${ns}`} at={p.tab} tabs={tabs} />
  const crumb = <div class="crumb">{p.db} › <a href={collection(ns, 'documents')}>{p.name}</a>{p.tab === 'why' && place.value.query.get('id') ? ' › one document' : ''}</div>
  const part: Part = { db: p.db, name: p.name, ns, isView, bar, crumb }
  switch (p.tab) {
    case 'expiry': return <Expiry {...part} />
    case 'indexes': return <Indexes {...part} />
    case 'why': return <Why {...part} />
  }
  return <Documents {...part} />
}
