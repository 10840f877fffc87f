// The way to the server: who the browser is, and commands of the database.
import { signal } from '@preact/signals'
import { parseReply, plain, toJSON, type Doc, type Input, type Value } from './ejson'

export interface Session { token: string; authorization: boolean; user: { user: string; db: string } | null; version: string; mongoVersion: string; now: number }

export const session = signal<Session | null>(null)
/** Since when the server does not answer; null while it does. */
export const lostSince = signal<number | null>(null)
/** How far the server's clock is ahead of the browser's, in milliseconds. */
export const clockAhead = signal(0)
export const needsLogin = signal(false)

/** The time of the server's database. All that is shown of time is by it. */
export const now = () => Date.now() + clockAhead.peek()

/** An error reply of a command. */
export class CommandError extends Error {
  constructor(message: string, readonly code: number, readonly codeName: string) { super(message) }
}

/** The server does not answer, or does not take the request. */
export class DoorError extends Error { constructor(message: string, readonly status: number) { super(message) } }

async function request(path: string, body?: string, signal?: AbortSignal): Promise<string> {
  const headers: Record<string, string> = { 'X-Ebb-Console': '1' }
  if (body !== undefined) {
    headers['Content-Type'] = 'application/json'
    headers['X-Ebb-Token'] = session.peek()?.token ?? ''
  }
  let r: Response, text: string, told: number, at: number
  try {
    r = await fetch(path, { method: body === undefined ? 'GET' : 'POST', headers, body, signal, credentials: 'same-origin', cache: 'no-store', redirect: 'error' })
    at = Date.now()
    told = Number(r.headers.get('X-Ebb-Now') ?? 0)
    text = await r.text()
  } catch (e) {
    if (signal?.aborted) throw e
    lostSince.value ??= Date.now()
    throw new DoorError('The server does not answer.', 0)
  }
  lostSince.value = null
  if (told !== 0) follow(told, at)
  if (!r.ok) {
    let why = text
    try { why = JSON.parse(text).error } catch { /* it is no JSON */ }
    throw new DoorError(why, r.status)
  }
  return text
}

/** By how many milliseconds the way to the server may make its time look other than it is. */
const jitter = 500

/** Takes note of the server's time, as it was told at that moment of the browser's. It may be set while the page is open. */
function follow(told: number, at: number) {
  if (Math.abs(told - at - clockAhead.peek()) > jitter) clockAhead.value = told - at
}

function enter(text: string) {
  const s: Session = JSON.parse(text)
  clockAhead.value = s.now - Date.now()
  session.value = s
  needsLogin.value = s.authorization && s.user === null
}

let opening: Promise<void> | null = null

/** Begins a session, or finds the one that the browser has. */
export function open(): Promise<void> {
  opening ??= request('/api/session').then(enter).finally(() => { opening = null })
  return opening
}

export async function login(user: string, password: string, db: string) { enter(await request('/api/login', JSON.stringify({ user, password, db }))) }

export async function logout() { enter(await request('/api/logout', '{}')) }

/** Runs a command, whose reply is in values of BSON. */
export async function runDoc(db: string, command: Input, signal?: AbortSignal): Promise<Doc> {
  const inner = toJSON(command)
  const body = inner.slice(0, -1) + (inner === '{}' ? '' : ',') + `"$db":${JSON.stringify(db)}}`
  let text: string
  try {
    text = await request('/api/command', body, signal)
  } catch (e) {
    if (!(e instanceof DoorError) || e.status !== 401 && e.status !== 403) throw e
    await open() // the session has ended: another one begins, and the command was not run
    text = await request('/api/command', body, signal)
  }
  const reply = parseReply(text) as Doc
  if (plain(reply.get('ok')) !== 1) {
    const code = plain(reply.get('code')) ?? 0
    if (code === 13 && session.peek()?.user == null && session.peek()?.authorization) needsLogin.value = true
    throw new CommandError(String(reply.get('errmsg') ?? 'it failed'), code, String(reply.get('codeName') ?? ''))
  }
  return reply
}

/** Runs a command whose reply the console itself works with; see plain. */
export async function run(db: string, command: Input, signal?: AbortSignal): Promise<any> { return plain(await runDoc(db, command, signal)) }

/** All documents of a cursor, `limit` at most. */
export async function all(db: string, command: Input, limit = 10_000, signal?: AbortSignal): Promise<any[]> {
  let reply = await runDoc(db, command, signal)
  const out: any[] = []
  for (;;) {
    const cursor = reply.get('cursor') as Doc
    out.push(...(plain(cursor.get('firstBatch') ?? cursor.get('nextBatch')) as any[]))
    const id = cursor.get('id') as Value
    if (Number(plain(id)) === 0) return out
    const ns = String(cursor.get('ns'))
    const [at, coll] = [ns.slice(0, ns.indexOf('.')), ns.slice(ns.indexOf('.') + 1)]
    if (out.length >= limit) {
      void runDoc(at, { killCursors: coll, cursors: [id] }).catch(() => {})
      return out.slice(0, limit)
    }
    reply = await runDoc(at, { getMore: id, collection: coll }, signal)
  }
}

/** The fault of something that has failed, in words. */
export const words = (e: unknown): string => e instanceof CommandError && e.codeName ? `${e.message} (${e.codeName})` : e instanceof Error ? e.message : String(e)
