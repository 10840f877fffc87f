// The small parts that screens are made of.
import { signal } from '@preact/signals'
import type { ComponentChildren, JSX } from 'preact'
import { useEffect, useId, useRef, useState } from 'preact/hooks'
import type { Tone } from '../expiry'
import { toText, typeOf, type Value } from '../ejson'
import { exact, plural } from '../time'

export function Panel(p: { title?: ComponentChildren; aside?: ComponentChildren; class?: string; children?: ComponentChildren }) {
  return <section class={'panel ' + (p.class ?? '')}>
    {(p.title || p.aside) && <header><h2>{p.title}</h2>{p.aside}</header>}
    {p.children}
  </section>
}

export const Badge = (p: { tone?: Tone; title?: string; children?: ComponentChildren }) => <span class={'badge ' + (p.tone ?? '')} title={p.title}><span>{p.children}</span></span>

export const Fault = (p: { text?: string }) => p.text ? <p class="fault" role="alert">{p.text}</p> : null

export const Bone = (p: { w?: string; h?: number; block?: boolean }) => <span class="bone" aria-hidden="true" style={{ display: p.block ? 'block' : 'inline-block', width: p.w ?? '100%', height: `${p.h ?? 14}px` }} />

/** One of a few, as buttons in a row. */
export function Segments<T extends string>(p: { label: string; value: T; options: [T, ComponentChildren][]; onChange: (v: T) => void; small?: boolean; disabled?: boolean }) {
  const name = useId()
  return <span class={'seg' + (p.small ? ' s' : '')} role="radiogroup" aria-label={p.label}>
    {p.options.map(([v, text]) => <label key={v}><input type="radio" name={name} checked={p.value === v} disabled={p.disabled} onChange={() => p.onChange(v)} />{text}</label>)}
  </span>
}

export function Tabs(p: { label: string; at: string; tabs: [string, ComponentChildren, string][] }) {
  return <nav class="tabs" aria-label={p.label}>{p.tabs.map(([key, text, href]) => <a key={key} href={href} aria-current={p.at === key ? 'page' : undefined}>{text}</a>)}</nav>
}

/** A modal dialog. */
export function Dialog(p: { title: string; big?: boolean; onClose: () => void; children: ComponentChildren }) {
  const ref = useRef<HTMLDialogElement>(null)
  const id = useId()
  useEffect(() => {
    const d = ref.current!
    d.showModal()
    return () => d.close()
  }, [])
  return <dialog ref={ref} class={p.big ? 'big' : ''} aria-labelledby={id} onCancel={e => { e.preventDefault(); p.onClose() }} onClick={e => { if (e.target === ref.current) p.onClose() }}>
    <div class="dialog"><h2 id={id}>{p.title}</h2>{p.children}</div>
  </dialog>
}

/** What deletes much asks for its number, typed; what deletes something named, for the name. */
export function Confirm(p: { ask: string; label: string; busy?: boolean; tone?: 'd' | 'p'; onConfirm: () => void; onCancel: () => void; cancel?: string; disabled?: boolean }) {
  const [typed, type] = useState('')
  const id = useId()
  const ok = typed.replace(/[,\s]/g, '') === p.ask.replace(/[,\s]/g, '')
  return <form class="bar" style={{ margin: '14px 0 0' }} onSubmit={e => { e.preventDefault(); if (ok && !p.busy && !p.disabled) p.onConfirm() }}>
    <label class="muted" for={id}>Type <b class="mono">{p.ask}</b> to confirm</label>
    <input id={id} type="text" size={Math.max(10, p.ask.length + 2)} autocomplete="off" spellcheck={false} value={typed} onInput={e => type(e.currentTarget.value)} />
    <button class={'btn ' + (p.tone ?? 'd')} disabled={!ok || p.busy || p.disabled}>{p.label}</button>
    <button type="button" class="btn" onClick={p.onCancel}>{p.cancel ?? 'Leave as it is'}</button>
  </form>
}

/** Asks before something lets many documents go. The number is that of the moment in which it is asked: it stands still while somebody types it. */
export function Release(p: { title: string; n: number; more?: boolean; onConfirm: () => Promise<void>; onClose: () => void }) {
  const [n] = useState(p.n)
  return <Dialog title={p.title} onClose={p.onClose}>
    <p>{n > 0 ? <><b>{exact(n)}{p.more ? ' and more' : ''} {plural(n, 'document is', 'documents are')} past {plural(n, 'its', 'their')} deadline</b> and {plural(n, 'is', 'are')} deleted at once. That cannot be taken back.</> : 'Nothing is past its deadline. What comes goes on time again.'}</p>
    {n > 0 ? <Confirm ask={String(n)} label="Let them go" onCancel={p.onClose} onConfirm={() => void p.onConfirm()} cancel="Leave it held" />
      : <div class="bar"><button class="btn p" onClick={() => void p.onConfirm()}>Go on</button><button class="btn" onClick={p.onClose}>Leave it held</button></div>}
  </Dialog>
}

/** A value in a cell, cut to its room. */
export function Cell(p: { value: Value | undefined }) {
  const v = p.value
  if (v === undefined) return <span class="faint" aria-label="missing">–</span>
  const type = typeOf(v)
  const kind = type === 'string' ? 'v-string' : ['int', 'long', 'double', 'decimal'].includes(type) ? 'v-num' : type === 'date' ? 'v-date' : 'v-other'
  const text = typeof v === 'string' ? v.slice(0, 200) : toText(v, 120).replace(/^(ISODate|ObjectId|Long|Decimal128|UUID)\("(.*)"\)$/, '$2')
  return <span class={kind} title={`${type}: ${typeof v === 'string' ? v.slice(0, 1000) : toText(v, 1000)}`}>{text}</span>
}

/** A document as text, its parts in colours. */
export function Json(p: { text: string }) {
  const parts: JSX.Element[] = []
  const pattern = /("(?:[^"\\]|\\.)*"|[\w$]+)(\s*:)|("(?:[^"\\]|\\.)*")|\b([A-Z]\w+)(?=\()|\b(-?\d[\d.eE+-]*|true|false|null)\b/g
  let from = 0, n = 0
  for (const m of p.text.matchAll(pattern)) {
    if (m.index > from) parts.push(<>{p.text.slice(from, m.index)}</>)
    const [cls, t, rest] = m[1] !== undefined ? ['k', m[1], m[2]] : m[3] !== undefined ? ['s', m[3], ''] : m[4] !== undefined ? ['c', m[4], ''] : ['n', m[5], '']
    parts.push(<span key={n++}><span class={cls}>{t}</span>{rest}</span>)
    from = m.index + m[0].length
  }
  parts.push(<>{p.text.slice(from)}</>)
  return <pre class="json">{parts}</pre>
}

// ---- a tip that follows the pointer or the focus ----

export const tip = signal<{ x: number; y: number; text: ComponentChildren } | null>(null)
export const Tip = () => tip.value ? <div class="tip" role="presentation" style={{ left: `${tip.value.x}px`, top: `${tip.value.y}px` }}>{tip.value.text}</div> : null
export function tipFor(text: () => ComponentChildren) {
  const show = (e: Event) => {
    const r = (e.currentTarget as Element).getBoundingClientRect()
    tip.value = { x: Math.min(innerWidth - 190, Math.max(190, r.x + r.width / 2)), y: r.y, text: text() }
  }
  const hide = () => { tip.value = null }
  return { onPointerEnter: show, onPointerLeave: hide, onFocus: show, onBlur: hide }
}

// ---- what was done, said once, also to those who do not see ----

export const said = signal<{ text: string; bad?: boolean } | null>(null)
let clearing = 0
export function say(text: string, bad = false) {
  said.value = { text, bad }
  clearTimeout(clearing)
  clearing = window.setTimeout(() => { said.value = null }, 6000)
}

/** Saves a text as a file. */
export function save(name: string, type: string, parts: BlobPart[]) {
  const url = URL.createObjectURL(new Blob(parts, { type }))
  const a = document.createElement('a')
  a.href = url
  a.download = name
  a.click()
  setTimeout(() => URL.revokeObjectURL(url), 10_000)
}
