// Roles: those of the server, and those that were made: what they may do, and making, changing and dropping them.
import { useState } from 'preact/hooks'
import { all, CommandError, run, words } from '../api'
import { collections, useLoad } from '../store'
import { exact, Number_, plural } from '../time'
import { Badge, Bone, Confirm, Dialog, Fault, Panel, say } from '../parts/ui'
import { readRoles, roleText, type Bar } from './settings'

interface Resource { db?: string; collection?: string; cluster?: boolean; anyResource?: boolean; system_buckets?: string }
interface Privilege { resource: Resource; actions: string[] }
interface RoleName { role: string; db: string }
interface Role extends RoleName { isBuiltin?: boolean; roles: RoleName[]; privileges?: Privilege[] }

/** The roles that were made: of all databases where one may read them all, or else of those that one sees. */
async function readOwn(s: AbortSignal): Promise<Role[]> {
  try {
    return await all('admin', { find: 'system.roles', sort: { db: 1, role: 1 }, batchSize: 10_000 }, 10_000, s)
  } catch (e) { if (!(e instanceof CommandError) || e.code !== 13) throw e }
  const dbs = [...new Set(['admin', ...(collections.peek() ?? []).map(c => c.db)])].slice(0, 50)
  const found = await Promise.all(dbs.map(db => run(db, { rolesInfo: 1, showPrivileges: true }, s).then(r => r.roles as Role[]).catch(() => [])))
  return found.flat()
}

const readBuiltin = async (s: AbortSignal): Promise<Role[]> => ((await run('admin', { rolesInfo: 1, showBuiltinRoles: true, showPrivileges: true }, s)).roles as Role[]).filter(r => r.isBuiltin)

/** The names of roles, for completion. */
export function useKnownRoles(): string[] {
  const own = useLoad('own roles', readOwn), builtin = useLoad('builtin roles', readBuiltin)
  return [...(own.data ?? []).map(r => `${r.role}@${r.db}`), ...(builtin.data ?? []).map(r => r.role)]
}

/** What a privilege is about, in words. */
function about(r: Resource): string {
  if (r.cluster) return 'the server'
  if (r.anyResource) return 'everything'
  if (r.system_buckets !== undefined) return `buckets ${r.db || 'of any database'}`
  if (!r.db && !r.collection) return 'every database'
  return r.db ? r.collection ? `${r.db}.${r.collection}` : `database ${r.db}` : `${r.collection} of every database`
}

const actionsOf = (r: Role) => [...new Set((r.privileges ?? []).flatMap(p => p.actions))]

export function Roles({ bar }: Bar) {
  const own = useLoad('own roles', readOwn, 15_000)
  const builtin = useLoad('builtin roles', readBuiltin)
  const [editing, edit] = useState<Role | 'new' | null>(null)
  const [dropping, drop] = useState<Role | null>(null)
  const list = own.data ?? []
  const known = [...list.map(r => `${r.role}@${r.db}`), ...(builtin.data ?? []).map(r => r.role)]
  const actions = [...new Set((builtin.data ?? []).flatMap(r => r.privileges ?? []).flatMap(p => p.actions))].sort()
  return <>
    <h1>{own.data ? list.length === 0 ? 'There are only the roles of the server.' : `${Number_(list.length)} ${plural(list.length, 'role')} of your own.` : own.fault ? 'The roles cannot be read.' : <Bone w="280px" h={26} />}</h1>
    <p class="lead">A role is what somebody may do: privileges, and what the roles that it has may do.</p>{bar}<Fault text={own.fault} />
    {list.length > 0 && <Panel class="flush hover"><div class="scroll"><table><thead><tr><th>role</th><th>database</th><th>has the roles</th><th>may</th><th><span class="sr">actions</span></th></tr></thead><tbody>{list.map(r => <tr key={r.db + '.' + r.role}><td><b style={{ fontWeight: 550 }}>{r.role}</b></td><td>{r.db}</td>
      <td>{r.roles.length ? r.roles.map((x, i) => <span key={i}><Badge>{roleText(x, r.db)}</Badge> </span>) : <span class="faint">none</span>}</td>
      <td>{(r.privileges ?? []).length ? r.privileges!.slice(0, 6).map((p, i) => <div key={i}>{about(p.resource)} <span class="faint">{p.actions.join(', ')}</span></div>) : <span class="faint">nothing of its own</span>}{(r.privileges?.length ?? 0) > 6 && <span class="faint">and {exact(r.privileges!.length - 6)} more</span>}</td>
      <td class="r"><button class="btn s" onClick={() => edit(r)} aria-label={`Change ${r.role}`}>Change</button> <button class="btn s" onClick={() => drop(r)} aria-label={`Drop ${r.role}`}>Drop</button></td></tr>)}</tbody></table></div></Panel>}
    <div class="bar"><button class="btn" onClick={() => edit('new')}>Make a role</button></div>
    <Panel title="Roles of the server">{builtin.fault ? <Fault text={builtin.fault} /> : !builtin.data ? <Bone h={60} block /> : <div class="scroll" tabIndex={0} role="region" aria-label="Roles of the server"><table><thead><tr><th>role</th><th>may</th></tr></thead><tbody>{builtin.data.map(r => <tr key={r.role}><td class="nowrap">{r.role}</td>
      <td>{[...new Set((r.privileges ?? []).map(p => about(p.resource)))].slice(0, 5).map((x, i) => <span key={i}>{i > 0 ? ', ' : ''}{x}</span>)} <span class="faint" title={actionsOf(r).join(', ')}>{actionsOf(r).length === 1 ? 'one action' : `${exact(actionsOf(r).length)} actions`}</span></td></tr>)}</tbody></table></div>}</Panel>
    {editing && <Edit role={editing === 'new' ? undefined : editing} known={known} actions={actions} onClose={() => edit(null)} onDone={own.again} />}
    {dropping && <Dialog title={`Drop ${dropping.role}`} onClose={() => drop(null)}><p class="muted">Users and roles that have it lose what it lets them do, from their next command on.</p><Confirm ask={dropping.role} label="Drop" onCancel={() => drop(null)} onConfirm={async () => {
      try { await run(dropping.db, { dropRole: dropping.role }); say(`${dropping.role} is dropped`); own.again() } catch (e) { say(words(e), true) }
      drop(null)
    }} /></Dialog>}
  </>
}

/** A privilege as it is typed. What is of another kind than these stays as it is. */
interface Line { kind: 'collection' | 'cluster' | 'other'; db: string; collection: string; actions: string; was?: Privilege }

const lineOf = (p: Privilege): Line => {
  const r = p.resource
  return { kind: r.cluster ? 'cluster' : r.anyResource || r.system_buckets !== undefined ? 'other' : 'collection', db: r.db ?? '', collection: r.collection ?? '', actions: p.actions.join(', '), was: p }
}

const privilegeOf = (l: Line): Privilege => ({ resource: l.kind === 'other' ? l.was!.resource : l.kind === 'cluster' ? { cluster: true } : { db: l.db.trim(), collection: l.collection.trim() }, actions: l.actions.split(/[\s,]+/).filter(Boolean) })

function Edit(p: { role?: Role; known: string[]; actions: string[]; onClose: () => void; onDone: () => void }) {
  const [name, setName] = useState(p.role?.role ?? ''), [db, setDB] = useState(p.role?.db ?? 'admin')
  const [roles, setRoles] = useState(p.role ? p.role.roles.map(r => roleText(r, p.role!.db)).join(', ') : '')
  const [lines, setLines] = useState<Line[]>(p.role ? (p.role.privileges ?? []).map(lineOf) : [{ kind: 'collection', db: '', collection: '', actions: 'find' }])
  const [fault, setFault] = useState('')
  const change = (i: number, to: Partial<Line>) => setLines(lines.map((l, k) => k === i ? { ...l, ...to } : l))
  const submit = async () => {
    setFault('')
    try {
      const what = { privileges: lines.map(privilegeOf) as any, roles: readRoles(roles, db) as any }
      await run(db, p.role ? { updateRole: name, ...what } : { createRole: name, ...what })
      say(p.role ? `${name} is changed` : `${name} is made`)
      p.onDone()
      p.onClose()
    } catch (e) { setFault(words(e)) }
  }
  return <Dialog big title={p.role ? `Change ${p.role.role} of ${p.role.db}` : 'Make a role'} onClose={p.onClose}><form class="stack" onSubmit={e => { e.preventDefault(); void submit() }}>
    {!p.role && <div class="two"><label class="field"><span>Name</span><input type="text" required value={name} onInput={e => setName(e.currentTarget.value)} autocomplete="off" spellcheck={false} autoFocus /></label><label class="field"><span>Database</span><input type="text" required value={db} onInput={e => setDB(e.currentTarget.value)} spellcheck={false} /></label></div>}
    <label class="field"><span>Has the roles, such as read, readWrite@app</span><input type="text" list="roles-known" value={roles} onInput={e => setRoles(e.currentTarget.value)} spellcheck={false} /><datalist id="roles-known">{p.known.map(r => <option key={r} value={r} />)}</datalist></label>
    <fieldset><legend>And may</legend>
      {lines.length === 0 && <p class="faint">Nothing of its own.</p>}
      {lines.map((l, i) => <div class="privilege" key={i}>
        <input type="text" aria-label={`Actions ${i + 1}`} list="actions-known" placeholder="find, insert" value={l.actions} onInput={e => change(i, { actions: e.currentTarget.value })} spellcheck={false} required />
        <span class="muted">on</span>
        {l.kind === 'other' ? <span>{about(l.was!.resource)}</span> : <select aria-label={`What ${i + 1} is about`} value={l.kind} onChange={e => change(i, { kind: e.currentTarget.value as Line['kind'] })}><option value="collection">data</option><option value="cluster">the server</option></select>}
        {l.kind === 'collection' && <><input type="text" aria-label={`Database ${i + 1}`} placeholder="any database" value={l.db} onInput={e => change(i, { db: e.currentTarget.value })} spellcheck={false} /><input type="text" aria-label={`Collection ${i + 1}`} placeholder="any collection" value={l.collection} onInput={e => change(i, { collection: e.currentTarget.value })} spellcheck={false} /></>}
        <button type="button" class="btn s" aria-label={`Remove ${i + 1}`} onClick={() => setLines(lines.filter((_, k) => k !== i))}>Remove</button></div>)}
      <datalist id="actions-known">{p.actions.map(a => <option key={a} value={a} />)}</datalist>
      <button type="button" class="btn s" onClick={() => setLines([...lines, { kind: 'collection', db: '', collection: '', actions: '' }])}>Add a privilege</button>
    </fieldset>
    <Fault text={fault} /><div class="bar"><button class="btn p">{p.role ? 'Change' : 'Make'}</button><button type="button" class="btn" onClick={p.onClose}>Close</button></div></form></Dialog>
}
