// The frame around all screens: what there is, where one is, who one is.
import { useComputed, useSignal } from '@preact/signals'
import { Component, type ComponentChildren } from 'preact'
import { useEffect, useMemo, useRef, useState } from 'preact/hooks'
import { login, logout, lostSince, needsLogin, open, session, words } from './api'
import { collections, counts, hello, readCollections, readCounts, setTheme, theme, useLoad, type Coll, type Theme } from './store'
import { collection, go, place } from './router'
import { count, moment } from './time'
import { Fault, said, Tip } from './parts/ui'
import { run } from './api'
import { Home } from './screens/home'
import { Collection } from './screens/collection'
import { Operations } from './screens/operations'
import { Storage } from './screens/storage'
import { Settings } from './screens/settings'

const Waves = () => <svg viewBox="0 0 24 24" aria-hidden="true"><path d="M2 9c3.3-3.5 6.7-3.5 10 0s6.7 3.5 10 0" fill="none" stroke="var(--water)" stroke-width="2.4" stroke-linecap="round" />
  <path d="M2 15.5c3.3-3 6.7-3 10 0s6.7 3 10 0" fill="none" stroke="var(--water)" stroke-width="2.4" stroke-linecap="round" opacity=".45" /></svg>

export function App() {
  const finding = useSignal(false)
  const since = lostSince.value
  useEffect(() => {
    if (since === null) return
    const t = setInterval(() => { if (!document.hidden) void open().catch(() => {}) }, 2000)
    return () => clearInterval(t)
  }, [since])
  useKeys(() => { finding.value = true })
  if (needsLogin.value) return <Login />
  return <>
    <a class="skip" href="#main" onClick={e => { e.preventDefault(); document.getElementById('main')?.focus() }}>To the content</a>
    <div class={'frame' + (since !== null ? ' lost' : '')}>
      <Side onFind={() => { finding.value = true }} />
      <main id="main" tabIndex={-1} style={{ outline: 'none' }}>{session.value && <Guard key={place.value.path.join('/')}><Screen /></Guard>}</main>
    </div>
    {since !== null && <div class="lost-note" role="alert">No answer from the server since {moment(since, Date.now())}. These figures are old.</div>}
    {finding.value && <Find onClose={() => { finding.value = false }} />}
    <div role="status" aria-live="polite" class={said.value ? 'lost-note' : 'sr'} style={said.value ? { top: 'auto', bottom: '18px', background: said.value.bad ? 'var(--late)' : 'var(--ink)', color: 'var(--bg)' } : {}}>{said.value?.text}</div>
    <Tip />
  </>
}

/** What fails while it is drawn takes its screen away, and not the page. Another screen begins anew. */
class Guard extends Component<{ children: ComponentChildren }, { fault?: string }> {
  static getDerivedStateFromError(e: unknown) { return { fault: words(e) } }
  render() {
    return this.state.fault === undefined ? this.props.children : <><h1>This cannot be shown.</h1><Fault text={this.state.fault} />
      <p class="lead"><button class="btn" onClick={() => this.setState({ fault: undefined })}>Try again</button></p></>
  }
}

function Screen() {
  const { path } = place.value
  const title = useComputed(() => place.value.path.join(' › '))
  useEffect(() => { document.title = (title.value ? title.value + ' · ' : '') + 'Ebb' }, [title.value])
  switch (path[0]) {
    case undefined: return <Home />
    case 'c': if (path.length >= 3) return <Collection key={path[1] + '.' + path[2]} db={path[1]} name={path[2]} tab={path[3] ?? 'documents'} />; break
    case 'operations': return <Operations tab={path[1] ?? 'running'} />
    case 'storage': return <Storage />
    case 'settings': return <Settings tab={path[1] ?? 'parameters'} />
  }
  return <><h1>There is nothing at this address.</h1><p class="lead"><a href="#/"><u>To the tide</u></a></p></>
}

/** / finds a collection; g and a letter go to a screen. */
function useKeys(find: () => void) {
  useEffect(() => {
    let g = 0
    const down = (e: KeyboardEvent) => {
      const t = e.target as HTMLElement
      if (e.ctrlKey || e.metaKey || e.altKey || t.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(t.tagName) || document.querySelector('dialog[open]')) return
      if (e.key === '/') {
        e.preventDefault()
        find()
      } else if (e.key === 'g') {
        g = Date.now()
      } else if (Date.now() - g < 1500) {
        g = 0
        const to: Record<string, string> = { t: '#/', o: '#/operations', s: '#/storage', p: '#/settings/parameters', l: '#/operations/log', u: '#/settings/users' }
        if (to[e.key]) go(to[e.key])
      }
    }
    addEventListener('keydown', down)
    return () => removeEventListener('keydown', down)
  }, [])
}

/** The height of a line of the side, and how many lines are drawn beyond those that are seen. */
const lineHeight = 33, beyond = 10

/** All collections, of which only those that are seen are drawn. */
function Trees(p: { here: string; tab: string; fault: string }) {
  const box = useRef<HTMLDivElement>(null)
  const [seen, see] = useState({ top: 0, height: 800 })
  const cols = collections.value
  const lines = useMemo(() => {
    const out: (Coll | string)[] = []
    for (const [i, c] of (cols ?? []).entries()) {
      if (i === 0 || cols![i - 1].db !== c.db) out.push(c.db)
      out.push(c)
    }
    return out
  }, [cols])
  const first = Math.max(0, Math.floor(seen.top / lineHeight) - beyond), last = Math.min(lines.length, Math.ceil((seen.top + seen.height) / lineHeight) + beyond)
  const drawn = lines.slice(first, last)
  // Where one may not ask for all, those are counted that are seen.
  useLoad(`counts ${cols?.length ?? 0}`, s => readCounts(drawn.filter((l): l is Coll => typeof l !== 'string'), s), 30_000, 40)
  useEffect(() => {
    const el = box.current!
    const r = new ResizeObserver(() => see(s => ({ ...s, height: el.clientHeight })))
    r.observe(el)
    return () => r.disconnect()
  }, [])
  useEffect(() => {
    const i = lines.findIndex(l => typeof l !== 'string' && l.ns === p.here), el = box.current!
    if (i >= 0 && (i * lineHeight < el.scrollTop || (i + 1) * lineHeight > el.scrollTop + el.clientHeight)) el.scrollTop = (i - 3) * lineHeight
  }, [p.here, lines])
  return <div class="trees" tabIndex={-1} ref={box} onScroll={e => { const top = e.currentTarget.scrollTop; see(s => ({ ...s, top })) }}>
    <div style={{ height: `${first * lineHeight}px` }} />
    {drawn.map(l => typeof l === 'string' ? <h3 key={'db ' + l}>{l}</h3> : <a key={l.ns} href={collection(l.ns, l.type === 'view' ? 'documents' : p.tab)} aria-current={p.here === l.ns ? 'page' : undefined} title={l.ns}>
      <span>{l.name}</span><span class="n">{l.type === 'view' ? 'view' : counts.value[l.ns] !== undefined ? count(counts.value[l.ns]) : ''}</span></a>)}
    <div style={{ height: `${(lines.length - last) * lineHeight}px` }} />
    {cols?.length === 0 && <p class="faint" style={{ padding: '14px 22px' }}>No collections yet.</p>}
    {p.fault && !lines.length && <p class="faint" style={{ padding: '14px 10px' }}>{p.fault}</p>}
  </div>
}

function Side(p: { onFind: () => void }) {
  const at = place.value.path
  const s = session.value
  const list = useLoad('collections', readCollections, s ? 20_000 : 0, 40)
  useLoad('hello', async s => { hello.value = await run('admin', { hello: 1 }, s) }, 30_000)
  const here = at[0] === 'c' ? `${at[1]}.${at[2]}` : ''
  const tab = at[0] === 'c' ? at[3] ?? 'documents' : 'expiry'
  return <nav class="side" aria-label="Console">
    <a class="brand" href="#/"><Waves />Ebb</a>
    <div class="places">
      <a href="#/" aria-current={at.length === 0 ? 'page' : undefined}>Tide</a>
      <a href="#/operations" aria-current={at[0] === 'operations' ? 'page' : undefined}>Operations</a>
      <a href="#/storage" aria-current={at[0] === 'storage' ? 'page' : undefined}>Storage</a>
      <a href="#/settings" aria-current={at[0] === 'settings' ? 'page' : undefined}>Settings</a>
    </div>
    <button class="find" onClick={p.onFind}><span>Find a collection</span><kbd>/</kbd></button>
    <Trees here={here} tab={tab} fault={list.fault} />
    <div class="foot">
      <span title="Ebb's version, and that of the MongoDB it speaks as">Ebb {s?.version} · MongoDB {s?.mongoVersion}</span><br />
      {hello.value?.setName ? <><a class="plain" href="#/operations/members">{hello.value.isWritablePrimary ? 'primary' : 'member'} of {hello.value.setName}</a> · </> : ''}{s?.user ? <>signed in as {s.user.user}</> : s?.authorization ? 'nobody is signed in' : 'no login is needed'}
      <div class="row1">
        <label><span class="sr">Theme</span><select style={{ padding: '1px 4px', fontSize: '12px' }} value={theme.value} onChange={e => setTheme(e.currentTarget.value as Theme)}><option value="system">as the system</option><option value="light">light</option><option value="dark">dark</option></select></label>
        {s?.user && <button class="link" onClick={() => void logout()}>sign out</button>}
      </div>
    </div>
  </nav>
}

/** The dialog that finds a collection by parts of its name. */
function Find(p: { onClose: () => void }) {
  const [text, setText] = useState('')
  const [at, setAt] = useState(0)
  const ref = useRef<HTMLDialogElement>(null)
  useEffect(() => {
    ref.current!.showModal()
    if (collections.peek() === null) void readCollections().catch(() => {})
  }, [])
  const wanted = text.toLowerCase().split(/\s+/).filter(Boolean)
  const found = (collections.value ?? []).filter(c => wanted.every(w => c.ns.toLowerCase().includes(w))).slice(0, 100)
  const choose = (c: Coll | undefined) => {
    if (!c) return
    p.onClose()
    go(collection(c.ns, c.type === 'view' ? 'documents' : 'expiry'))
  }
  const key = (e: KeyboardEvent) => {
    const move = { ArrowDown: 1, ArrowUp: -1 }[e.key]
    if (move) {
      e.preventDefault()
      const to = Math.max(0, Math.min(found.length - 1, at + move))
      setAt(to)
      document.getElementById('found-' + to)?.scrollIntoView({ block: 'nearest' })
    } else if (e.key === 'Enter') choose(found[at])
  }
  return <dialog ref={ref} aria-label="Find a collection" onCancel={p.onClose} onClick={e => { if (e.target === ref.current) p.onClose() }}>
    <input class="find-input" type="text" role="combobox" aria-expanded="true" aria-controls="found" aria-activedescendant={'found-' + at} aria-label="Parts of its name" placeholder="Parts of its name" autocomplete="off" spellcheck={false}
      value={text} onInput={e => { setText(e.currentTarget.value); setAt(0) }} onKeyDown={key} autoFocus />
    <ul id="found" class="find-list" role="listbox" aria-label="Collections">{found.map((c, i) => <li key={c.ns} id={'found-' + i} role="option" aria-selected={i === at} onClick={() => choose(c)} onPointerMove={() => setAt(i)}><span>{c.ns}</span>
      <span class="faint">{counts.value[c.ns] !== undefined ? count(counts.value[c.ns]) : c.type === 'collection' ? '' : c.type}</span></li>)}</ul>
    {found.length === 0 && <p class="empty" style={{ padding: '10px 0 22px' }}>{collections.value === null ? 'Reading…' : 'There is none of that name.'}</p>}
  </dialog>
}

function Login() {
  const [fault, setFault] = useState('')
  const [busy, setBusy] = useState(false)
  const submit = async (e: SubmitEvent) => {
    e.preventDefault()
    const f = new FormData(e.currentTarget as HTMLFormElement)
    setBusy(true)
    setFault('')
    try {
      await login(String(f.get('user')), String(f.get('password')), String(f.get('db') || 'admin'))
      collections.value = null
    } catch (e) {
      setFault(words(e))
    }
    setBusy(false)
  }
  return <main class="login" style={{ maxWidth: 'none' }}><form onSubmit={submit} class="panel" style={{ padding: '26px 28px' }}>
    <span class="brand"><Waves />Ebb</span>
    <h1 style={{ fontSize: '18px' }}>Sign in as a user of the database</h1>
    <label class="field"><span>Name</span><input type="text" name="user" autocomplete="username" required autoFocus autocapitalize="off" spellcheck={false} /></label>
    <label class="field"><span>Password</span><input type="password" name="password" autocomplete="current-password" required /></label>
    <label class="field"><span>Database of the user</span><input type="text" name="db" placeholder="admin" autocapitalize="off" spellcheck={false} /></label>
    <Fault text={fault} />
    <button class="btn p" disabled={busy}>{busy ? 'A moment…' : 'Sign in'}</button>
  </form></main>
}
