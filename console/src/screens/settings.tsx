// Server parameters and users.
import { useState } from 'preact/hooks'
import { run, runDoc, session, words } from '../api'
import { parse, toText, type Doc, type Value } from '../ejson'
import { place, setQuery } from '../router'
import { useLoad } from '../store'
import { exact, Number_, plural } from '../time'
import { Badge, Bone, Confirm, Dialog, Fault, Panel, say, Tabs } from '../parts/ui'
import { Roles, useKnownRoles } from './roles'

export function Settings(p: { tab: string }) {
  const bar = <Tabs label="Settings" at={p.tab} tabs={[['parameters', 'Parameters', '#/settings/parameters'], ['users', 'Users', '#/settings/users'], ['roles', 'Roles', '#/settings/roles']]} />
  return p.tab === 'users' ? <Users bar={bar} /> : p.tab === 'roles' ? <Roles bar={bar} /> : <Parameters bar={bar} />
}

export type Bar = { bar: preact.JSX.Element }

function Parameters({ bar }: Bar) {
  const q = place.value.query
  const text = q.get('q') ?? '', changeable = q.get('changeable') === '1'
  const list = useLoad('parameters', async s => {
    const d = await runDoc('admin', { getParameter: { showDetails: true, allParameters: true } }, s)
    return [...d].filter(([, v]) => v instanceof Map && v.has('value')).map(([name, v]) => ({ name, value: (v as Doc).get('value')!, runtime: (v as Doc).get('settableAtRuntime') === true, startup: (v as Doc).get('settableAtStartup') === true }))
  })
  const [changing, change] = useState<{ name: string; value: Value } | null>(null)
  const all = list.data ?? []
  const found = all.filter(x => x.name.toLowerCase().includes(text.toLowerCase()) && (!changeable || x.runtime))
  return <>
    <h1>{list.data ? `${exact(all.filter(x => x.runtime).length)} of ${exact(all.length)} parameters can be changed now.` : list.fault ? 'The parameters cannot be read.' : <Bone w="400px" h={26} />}</h1>
    <p class="lead">A change holds until the server ends; to keep it, give it with --setParameter or in the configuration file.</p>{bar}<Fault text={list.fault} />
    <div class="bar"><input class="grow" type="search" aria-label="Search parameters" placeholder="Search, such as ttl" value={text} onInput={e => setQuery({ q: e.currentTarget.value })} autoFocus /><label class="check"><input type="checkbox" checked={changeable} onChange={e => setQuery({ changeable: e.currentTarget.checked ? 1 : undefined })} />only those that can be changed</label></div>
    <Panel class="flush hover"><div class="scroll"><table><thead><tr><th>name</th><th>value</th><th>may be set</th><th><span class="sr">actions</span></th></tr></thead><tbody>
      {!list.data && !list.fault && [0, 1, 2, 3].map(i => <tr key={i}><td colSpan={4}><Bone /></td></tr>)}
      {found.map(x => <tr key={x.name}><td class="name">{x.name}</td><td class="mono value" style={{ overflowWrap: 'anywhere' }}>{toText(x.value, 200).replace(/^Long\("(-?\d+)"\)$/, '$1')}</td><td class="muted nowrap">{x.runtime ? x.startup ? 'at the start and now' : 'now' : x.startup ? 'at the start' : 'never'}</td><td class="r">{x.runtime && <button class="btn s" onClick={() => change(x)} aria-label={`Change ${x.name}`}>Change</button>}</td></tr>)}
    </tbody></table>{list.data && found.length === 0 && <p class="empty">None is called like that.</p>}</div></Panel>
    {changing && <ChangeParameter {...changing} onClose={() => change(null)} onDone={list.again} />}
  </>
}

function ChangeParameter(p: { name: string; value: Value; onClose: () => void; onDone: () => void }) {
  const [text, setText] = useState(toText(p.value)), [fault, setFault] = useState('')
  const expiry = p.name.startsWith('ttl')
  const set = async () => {
    setFault('')
    try {
      const r = await run('admin', { setParameter: 1, [p.name]: parse(text) })
      say(`${p.name} is changed${r.was !== undefined ? `; it was ${JSON.stringify(r.was)}` : ''}`)
      p.onDone()
      p.onClose()
    } catch (e) { setFault(words(e)) }
  }
  return <Dialog title={p.name} onClose={p.onClose}><form class="stack" onSubmit={e => { e.preventDefault(); if (!expiry) void set() }}><label class="field"><span>Value</span><input type="text" class="mono" value={text} onInput={e => setText(e.currentTarget.value)} autoFocus spellcheck={false} /></label>
    <p class="faint">It is {toText(p.value, 100)} now. Texts stand in quotes.</p><Fault text={fault} />{!expiry && <div class="bar"><button class="btn p">Change</button><button type="button" class="btn" onClick={p.onClose}>Leave as it is</button></div>}</form>
    {expiry && <><p class="warn" style={{ margin: 0 }}>It is about expiry in all collections, and holds at once: it may let documents go, or show those that are hidden.</p><Confirm ask={p.name} label="Change" tone="p" onConfirm={() => void set()} onCancel={p.onClose} /></>}</Dialog>
}

// ---- users ----

interface User { user: string; db: string; roles: { role: string; db: string }[]; mechanisms?: string[] }
export const roleText = (r: { role: string; db: string }, db: string) => r.db === db ? r.role : `${r.role}@${r.db}`

function Users({ bar }: Bar) {
  const users = useLoad('users', async s => (await run('admin', { usersInfo: { forAllDBs: true } }, s)).users as User[], 10_000)
  const known = useKnownRoles()
  const [doing, doIt] = useState<{ what: 'add' | 'password' | 'roles' | 'drop'; user?: User } | null>(null)
  const list = users.data ?? []
  const again = users.again
  return <>
    <h1>{users.data ? list.length === 0 ? 'There are no users yet.' : `${Number_(list.length)} ${plural(list.length, 'user')}.` : users.fault ? 'The users cannot be read.' : <Bone w="240px" h={26} />}</h1>
    <p class="lead">{session.value?.authorization ? 'Who connects has to log in, and may do what the roles allow.' : 'This server asks nobody to log in: whoever reaches it may do everything. Start it with --auth to have that change.'}</p>{bar}<Fault text={users.fault} />
    <Panel class={list.length ? 'flush hover' : ''}>{list.length === 0 ? <p class="muted">{users.data ? 'The first one should have the role root.' : <Bone />}</p> : <div class="scroll"><table><thead><tr><th>user</th><th>database</th><th>roles</th><th>logs in by</th><th><span class="sr">actions</span></th></tr></thead><tbody>{list.map(u => <tr key={u.db + '.' + u.user}><td><b style={{ fontWeight: 550 }}>{u.user}</b>{session.value?.user?.user === u.user && session.value.user.db === u.db && <span class="faint"> you</span>}</td><td>{u.db}</td>
      <td>{u.roles.length === 0 ? <span class="faint">none</span> : u.roles.map((r, i) => <span key={i}><Badge tone={/^(root|__system|userAdmin.*|dbAdminAnyDatabase|readWriteAnyDatabase)$/.test(r.role) ? 'held' : ''}>{roleText(r, u.db)}</Badge> </span>)}</td><td class="muted">{(u.mechanisms ?? []).join(', ')}</td>
      <td class="r"><button class="btn s" onClick={() => doIt({ what: 'roles', user: u })} aria-label={`Roles of ${u.user}`}>Roles</button> <button class="btn s" onClick={() => doIt({ what: 'password', user: u })} aria-label={`Password of ${u.user}`}>Password</button> <button class="btn s" onClick={() => doIt({ what: 'drop', user: u })} aria-label={`Drop ${u.user}`}>Drop</button></td></tr>)}</tbody></table></div>}</Panel>
    <div class="bar"><button class="btn" onClick={() => doIt({ what: 'add' })}>Add a user</button></div>
    {doing && doing.what !== 'drop' && <UserDialog what={doing.what} user={doing.user} known={known} first={list.length === 0} onClose={() => doIt(null)} onDone={again} />}
    {doing?.what === 'drop' && <Dialog title={`Drop ${doing.user!.user}`} onClose={() => doIt(null)}><p class="muted">Connections of this user may do nothing from their next command on.</p><Confirm ask={doing.user!.user} label="Drop" onCancel={() => doIt(null)} onConfirm={async () => {
      try { await run(doing.user!.db, { dropUser: doing.user!.user }); say(`${doing.user!.user} is dropped`); again() } catch (e) { say(words(e), true) }
      doIt(null)
    }} /></Dialog>}
  </>
}

/** Reads "read@app, root" as roles; those without a database are of the user's. */
export const readRoles = (text: string, db: string) => text.split(/[\s,]+/).filter(Boolean).map(r => r.includes('@') ? { role: r.slice(0, r.lastIndexOf('@')), db: r.slice(r.lastIndexOf('@') + 1) } : { role: r, db })

function UserDialog(p: { what: 'add' | 'password' | 'roles'; user?: User; known: string[]; first: boolean; onClose: () => void; onDone: () => void }) {
  const [name, setName] = useState(p.user?.user ?? ''), [db, setDB] = useState(p.user?.db ?? 'admin'), [password, setPassword] = useState(''), [roles, setRoles] = useState(p.user ? p.user.roles.map(r => roleText(r, p.user!.db)).join(', ') : p.first ? 'root' : '')
  const [fault, setFault] = useState('')
  const submit = async () => {
    setFault('')
    try {
      if (p.what === 'add') await run(db, { createUser: name, ...(password || db !== '$external' ? { pwd: password } : {}), roles: readRoles(roles, db) })
      else if (p.what === 'password') await run(db, { updateUser: name, pwd: password })
      else await run(db, { updateUser: name, roles: readRoles(roles, db) })
      say(p.what === 'add' ? `${name} is added` : `${name} is changed`)
      p.onDone()
      p.onClose()
    } catch (e) { setFault(words(e)) }
  }
  return <Dialog title={p.what === 'add' ? 'Add a user' : p.what === 'password' ? `A new password for ${name}` : `Roles of ${name}`} onClose={p.onClose}><form class="stack" onSubmit={e => { e.preventDefault(); void submit() }}>
    {p.what === 'add' && <><label class="field"><span>Name</span><input type="text" required value={name} onInput={e => setName(e.currentTarget.value)} autocomplete="off" spellcheck={false} autoFocus /></label><label class="field"><span>Database</span><input type="text" required value={db} onInput={e => setDB(e.currentTarget.value)} spellcheck={false} /></label></>}
    {p.what !== 'roles' && <label class="field"><span>Password</span><input type="password" value={password} onInput={e => setPassword(e.currentTarget.value)} autocomplete="new-password" required={db !== '$external'} /></label>}
    {p.what !== 'password' && <label class="field"><span>Roles, such as readWrite@app</span><input type="text" list="known-roles" value={roles} onInput={e => setRoles(e.currentTarget.value)} spellcheck={false} /><datalist id="known-roles">{p.known.map(r => <option key={r} value={r} />)}</datalist></label>}
    <Fault text={fault} /><div class="bar"><button class="btn p">{p.what === 'add' ? 'Add' : 'Change'}</button><button type="button" class="btn" onClick={p.onClose}>Close</button></div></form></Dialog>
}
