// One collection: its documents, its expiry, its indexes, and why its documents go or stay.
import { place } from '../router'
import { collection } from '../router'
import { Tabs } from '../parts/ui'
import { collections } from '../store'
import { Expiry } from './expiry'

export function Collection(p: { db: string; name: string; tab: string }) {
  const ns = `${p.db}.${p.name}`
  const c = collections.value?.find(c => c.ns === ns)
  const isView = c?.type === 'view'
  const tabs: [string, string, string][] = [['documents', 'Documents', collection(ns, 'documents')]]
  if (!isView) tabs.push(['expiry', 'Expiry', collection(ns, 'expiry')], ['indexes', 'Indexes', collection(ns, 'indexes')], ['why', 'Why', collection(ns, 'why')])
  const bar = <Tabs label={`Parts of ${ns}`} at={p.tab} tabs={tabs} />
  const crumb = <div class="crumb">{p.db} › <a href={collection(ns, 'documents')}>{p.name}</a>{p.tab === 'why' && place.value.query.get('id') ? ' › one document' : ''}</div>
  const props = { db: p.db, name: p.name, ns, bar, crumb }
  switch (p.tab) {
    case 'expiry': return <Expiry {...props} />
  }
  return <>{crumb}{bar}</>
}
