// Values of BSON in the browser, exactly as they are in the database: a document that is read, shown, changed and written back has the
// types and the order of fields that it had. They travel as canonical extended JSON and are shown and typed as in the shell.

/** A document: its fields in their order. A plain object would put fields that are called like numbers first. */
export type Doc = Map<string, Value>
export type Value = null | boolean | string | Int32 | Long | Double | Decimal | DateTime | ObjectId | Binary | Regex | Timestamp | Other | Value[] | Doc

export class Int32 { constructor(readonly n: number) {} }
export class Long { constructor(readonly n: bigint) {} }
export class Double { constructor(readonly n: number) {} }
export class Decimal { constructor(readonly text: string) {} }
/** Milliseconds since 1970. */
export class DateTime { constructor(readonly ms: number) {} }
export class ObjectId { constructor(readonly hex: string) {} }
export class Binary { constructor(readonly base64: string, readonly subType: string) {} }
export class Regex { constructor(readonly pattern: string, readonly options: string) {} }
export class Timestamp { constructor(readonly t: number, readonly i: number) {} }
/** What is rare, as its extended JSON. */
export class Other { constructor(readonly json: string, readonly name: string) {} }

const minInt32 = -(2 ** 31), maxInt32 = 2 ** 31 - 1
const maxDepth = 220

// ---- to canonical extended JSON ----

/** What commands are made of: values, and what is easier to write. */
export type Input = Value | undefined | number | Date | Input[] | { [key: string]: Input }

export function toJSON(v: Input): string {
  if (v === null || v === undefined) return 'null'
  switch (typeof v) {
    case 'boolean': return String(v)
    case 'string': return JSON.stringify(v)
    case 'number': return toJSON(numberOf(v))
  }
  if (v instanceof Map) return '{' + [...v].map(([k, x]) => JSON.stringify(k) + ':' + toJSON(x)).join(',') + '}'
  if (Array.isArray(v)) return '[' + v.map(toJSON).join(',') + ']'
  if (v instanceof Int32) return `{"$numberInt":"${v.n}"}`
  if (v instanceof Long) return `{"$numberLong":"${v.n}"}`
  if (v instanceof Double) return `{"$numberDouble":"${doubleText(v.n)}"}`
  if (v instanceof Decimal) return `{"$numberDecimal":${JSON.stringify(v.text)}}`
  if (v instanceof DateTime) return `{"$date":{"$numberLong":"${v.ms}"}}`
  if (v instanceof Date) return `{"$date":{"$numberLong":"${v.getTime()}"}}`
  if (v instanceof ObjectId) return `{"$oid":"${v.hex}"}`
  if (v instanceof Binary) return `{"$binary":{"base64":"${v.base64}","subType":"${v.subType}"}}`
  if (v instanceof Regex) return `{"$regularExpression":{"pattern":${JSON.stringify(v.pattern)},"options":${JSON.stringify(v.options)}}}`
  if (v instanceof Timestamp) return `{"$timestamp":{"t":${v.t},"i":${v.i}}}`
  if (v instanceof Other) return v.json
  return '{' + Object.entries(v).filter(([, x]) => x !== undefined).map(([k, x]) => JSON.stringify(k) + ':' + toJSON(x)).join(',') + '}'
}

export function numberOf(n: number): Value {
  if (!Number.isInteger(n) || Object.is(n, -0)) return new Double(n)
  if (n >= minInt32 && n <= maxInt32) return new Int32(n)
  return Number.isSafeInteger(n) ? new Long(BigInt(n)) : new Double(n)
}

function doubleText(n: number): string {
  if (Number.isNaN(n)) return 'NaN'
  if (!Number.isFinite(n)) return n > 0 ? 'Infinity' : '-Infinity'
  if (Object.is(n, -0)) return '-0.0'
  const s = String(n)
  return /^-?\d+$/.test(s) ? s + '.0' : s
}

// ---- to what people read ----

/** The value in one line, as the shell takes it; what is longer than `limit` is cut. */
export function toText(v: Value, limit = Infinity): string {
  const out = text(v, limit)
  return out.length > limit ? out.slice(0, limit - 1) + '…' : out
}

function text(v: Value, room: number): string {
  if (v === null) return 'null'
  if (typeof v === 'boolean') return String(v)
  if (typeof v === 'string') return JSON.stringify(v)
  if (v instanceof Map) {
    const parts: string[] = []
    let used = 0
    for (const [k, x] of v) {
      if (used > room) break
      const part = keyText(k) + ': ' + text(x, room - used)
      used += part.length + 2
      parts.push(part)
    }
    return parts.length ? '{ ' + parts.join(', ') + ' }' : '{}'
  }
  if (Array.isArray(v)) {
    const parts: string[] = []
    let used = 0
    for (const x of v) {
      if (used > room) break
      const part = text(x, room - used)
      used += part.length + 2
      parts.push(part)
    }
    return '[' + parts.join(', ') + ']'
  }
  return scalarText(v)
}

function scalarText(v: Exclude<Value, null | boolean | string | Value[] | Doc>): string {
  if (v instanceof Int32) return String(v.n)
  if (v instanceof Long) return `Long("${v.n}")`
  if (v instanceof Double) return doubleText(v.n)
  if (v instanceof Decimal) return `Decimal128("${v.text}")`
  if (v instanceof DateTime) return `ISODate("${isoOf(v.ms)}")`
  if (v instanceof ObjectId) return `ObjectId("${v.hex}")`
  if (v instanceof Binary) return v.subType === '04' && v.base64.length === 24 ? `UUID("${uuidOf(v.base64)}")` : `BinData(${parseInt(v.subType, 16)}, "${v.base64}")`
  if (v instanceof Regex) return `RegExp(${JSON.stringify(v.pattern)}, ${JSON.stringify(v.options)})`
  if (v instanceof Timestamp) return `Timestamp(${v.t}, ${v.i})`
  return v.json
}

function isoOf(ms: number): string {
  const d = new Date(ms)
  return Number.isNaN(d.getTime()) ? String(ms) : d.toISOString()
}

function uuidOf(base64: string): string {
  const hex = [...atob(base64)].map(c => c.charCodeAt(0).toString(16).padStart(2, '0')).join('')
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join('-')
}

export function keyText(k: string): string { return /^[A-Za-z_$][\w$]*$/.test(k) ? k : JSON.stringify(k) }

/** The value over several lines, for the editor: what parse makes of it is the same value again. */
export function toLines(v: Value, indent = ''): string {
  const inner = indent + '  '
  if (v instanceof Map) {
    if (v.size === 0) return '{}'
    return '{\n' + [...v].map(([k, x]) => inner + keyText(k) + ': ' + toLines(x, inner)).join(',\n') + '\n' + indent + '}'
  }
  if (Array.isArray(v)) {
    if (v.length === 0) return '[]'
    const line = text(v, Infinity)
    if (line.length <= 80 && !v.some(x => x instanceof Map)) return line
    return '[\n' + v.map(x => inner + toLines(x, inner)).join(',\n') + '\n' + indent + ']'
  }
  return text(v, Infinity)
}

/** The value's type, by the name that $type knows it by. */
export function typeOf(v: Value): string {
  if (v === null) return 'null'
  if (typeof v === 'boolean') return 'bool'
  if (typeof v === 'string') return 'string'
  if (v instanceof Map) return 'object'
  if (Array.isArray(v)) return 'array'
  if (v instanceof Int32) return 'int'
  if (v instanceof Long) return 'long'
  if (v instanceof Double) return 'double'
  if (v instanceof Decimal) return 'decimal'
  if (v instanceof DateTime) return 'date'
  if (v instanceof ObjectId) return 'objectId'
  if (v instanceof Binary) return 'binData'
  if (v instanceof Regex) return 'regex'
  if (v instanceof Timestamp) return 'timestamp'
  return v.name
}

/** What programs of the console work with: numbers are numbers, dates are milliseconds, documents are objects without a prototype. */
export function plain(v: Value | undefined): any {
  if (v === undefined || v === null || typeof v !== 'object') return v
  if (v instanceof Map) {
    const o = Object.create(null)
    for (const [k, x] of v) o[k] = plain(x)
    return o
  }
  if (Array.isArray(v)) return v.map(plain)
  if (v instanceof Int32 || v instanceof Double) return v.n
  if (v instanceof Long) return Number(v.n)
  if (v instanceof Decimal) return Number(v.text)
  if (v instanceof DateTime) return v.ms
  if (v instanceof ObjectId) return v.hex
  return v
}

/** Where values are the same, so are their keys. */
export const keyOf = (v: Value): string => toJSON(v)

// ---- from text ----

export class SyntaxFault extends Error { constructor(message: string, readonly at: number) { super(message) } }

/** Reads extended JSON, and what people type: keys without quotes, single quotes, ObjectId(…), ISODate(…), /…/i, comments. */
export function parse(source: string): Value { return new Reader(source, true).whole() }

/**
 * Reads what the server says. A document may have a field twice there: others have written it so. The first one counts, as it does for the
 * database, and isDoubled tells it of the document.
 */
export function parseReply(source: string): Value { return new Reader(source, false).whole() }

const doubled = new WeakSet<Doc>()

/** Whether some field of the document is there twice, so that the document is not shown as a whole. */
export const isDoubled = (d: Doc): boolean => doubled.has(d)

/** The same, of what must be a document; an empty text is an empty one. */
export function parseDoc(source: string): Doc {
  if (source.trim() === '') return new Map()
  const v = parse(source)
  if (!(v instanceof Map)) throw new SyntaxFault('a document is needed: { … }', 0)
  return v
}

class Reader {
  private at = 0
  private depth = 0
  private twice = 0 // how many fields were there before
  constructor(private readonly s: string, private readonly typed: boolean) {}

  whole(): Value {
    const v = this.value()
    this.space()
    if (this.at < this.s.length) this.fail('something is left over')
    return v
  }

  private fail(why: string): never { throw new SyntaxFault(why, this.at) }

  private space() {
    for (;;) {
      while (this.at < this.s.length && /\s/.test(this.s[this.at])) this.at++
      if (this.s.startsWith('//', this.at)) {
        const end = this.s.indexOf('\n', this.at)
        this.at = end < 0 ? this.s.length : end
      } else if (this.s.startsWith('/*', this.at)) {
        const end = this.s.indexOf('*/', this.at)
        if (end < 0) this.fail('a comment has no end')
        this.at = end + 2
      } else return
    }
  }

  private take(c: string): boolean {
    this.space()
    if (this.s[this.at] !== c) return false
    this.at++
    return true
  }

  private need(c: string) { if (!this.take(c)) this.fail(`${c} is missing`) }

  private value(): Value {
    this.space()
    const c = this.s[this.at]
    if (c === '{') return this.doc()
    if (c === '[') return this.array()
    if (c === '"' || c === "'") return this.string(c)
    if (c === '/') return this.regex()
    if (c === undefined) this.fail('a value is missing')
    if (/[-+.\d]/.test(c)) return this.number()
    return this.word()
  }

  private doc(): Value {
    this.enter()
    this.need('{')
    const d: Doc = new Map(), twice = this.twice
    while (!this.take('}')) {
      const key = this.key()
      this.need(':')
      const again = d.has(key)
      if (again && this.typed) this.fail(`the field ${key} is there twice`)
      const v = this.value()
      if (again) this.twice++
      else d.set(key, v)
      if (!this.take(',')) {
        this.need('}')
        break
      }
    }
    this.depth--
    if (this.twice > twice) doubled.add(d)
    return extended(d)
  }

  private array(): Value {
    this.enter()
    this.need('[')
    const out: Value[] = []
    while (!this.take(']')) {
      out.push(this.value())
      if (!this.take(',')) {
        this.need(']')
        break
      }
    }
    this.depth--
    return out
  }

  private enter() { if (++this.depth > maxDepth) this.fail('it is nested too deeply') }

  private key(): string {
    this.space()
    const c = this.s[this.at]
    if (c === '"' || c === "'") return this.string(c)
    const m = /^[\w$][\w$.]*/.exec(this.s.slice(this.at, this.at + 1000))
    if (!m) this.fail('the name of a field is missing')
    this.at += m[0].length
    return m[0]
  }

  private string(quote: string): string {
    let out = ''
    let from = ++this.at
    for (;;) {
      const c = this.s[this.at]
      if (c === undefined) this.fail('a text has no end')
      if (c === quote) {
        out += this.s.slice(from, this.at++)
        return out
      }
      if (c !== '\\') {
        this.at++
        continue
      }
      out += this.s.slice(from, this.at)
      const e = this.s[++this.at]
      const simple: Record<string, string> = { n: '\n', t: '\t', r: '\r', b: '\b', f: '\f', v: '\v', 0: '\0' }
      if (e === 'u') {
        const hex = this.s.slice(this.at + 1, this.at + 5)
        if (!/^[\da-fA-F]{4}$/.test(hex)) this.fail('four hexadecimal digits are needed')
        out += String.fromCharCode(parseInt(hex, 16))
        this.at += 5
      } else {
        if (e === undefined) this.fail('a text has no end')
        out += simple[e] ?? e
        this.at++
      }
      from = this.at
    }
  }

  private regex(): Value {
    const start = ++this.at
    let inClass = false
    for (; ; this.at++) {
      const c = this.s[this.at]
      if (c === undefined || c === '\n') this.fail('a regular expression has no end')
      if (c === '\\') this.at++
      else if (c === '[') inClass = true
      else if (c === ']') inClass = false
      else if (c === '/' && !inClass) break
    }
    const pattern = this.s.slice(start, this.at++)
    const m = /^[a-z]*/.exec(this.s.slice(this.at, this.at + 10))!
    this.at += m[0].length
    return new Regex(pattern, [...m[0]].sort().join(''))
  }

  private number(): Value {
    const m = /^[-+]?(Infinity|0x[\da-fA-F]+|(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?)/.exec(this.s.slice(this.at, this.at + 400))
    if (!m) this.fail('this is no number')
    this.at += m[0].length
    const t = m[0].replace(/^\+/, '')
    if (/^-?\d+$/.test(t)) {
      const n = BigInt(t)
      if (t === '-0') return new Double(-0)
      if (n >= BigInt(minInt32) && n <= BigInt(maxInt32)) return new Int32(Number(n))
      if (BigInt.asIntN(64, n) === n) return new Long(n)
    }
    return new Double(Number(t))
  }

  private word(): Value {
    const m = /^[A-Za-z_$][\w$.]*/.exec(this.s.slice(this.at, this.at + 100))
    if (!m) this.fail('this is no value')
    let name = m[0]
    this.at += name.length
    switch (name) {
      case 'true': return true
      case 'false': return false
      case 'null': return null
      case 'undefined': return null
      case 'NaN': return new Double(NaN)
      case 'Infinity': return new Double(Infinity)
      case 'new':
        this.space()
        return this.word()
      case 'MinKey': case 'MaxKey':
        if (this.take('(')) this.need(')')
        return new Other(`{"$${name[0].toLowerCase()}${name.slice(1)}":1}`, name[0].toLowerCase() + name.slice(1))
    }
    const args: Value[] = []
    if (!this.take('(')) this.fail(`what is ${name}? Texts stand in quotes`)
    while (!this.take(')')) {
      args.push(this.value())
      if (!this.take(',')) {
        this.need(')')
        break
      }
    }
    return this.made(name, args)
  }

  private made(name: string, args: Value[]): Value {
    const [a, b] = args
    const str = typeof a === 'string' ? a : a instanceof Int32 || a instanceof Double ? String(a.n) : a instanceof Long ? String(a.n) : ''
    const int = (v: Value | undefined) => v instanceof Int32 ? v.n : v instanceof Long ? Number(v.n) : v instanceof Double ? v.n : 0
    try {
      switch (name) {
        case 'ObjectId':
          if (!/^[\da-f]{24}$/i.test(str)) this.fail('an ObjectId has 24 hexadecimal digits')
          return new ObjectId(str.toLowerCase())
        case 'ISODate': case 'Date': {
          const ms = a === undefined ? Date.now() : typeof a === 'string' ? Date.parse(/^\d{4}-\d\d-\d\dT[\d:.]+$/.test(a) ? a + 'Z' : a) || new Date(a).getTime() : int(a)
          if (!Number.isFinite(ms)) this.fail('this is no date')
          return new DateTime(ms)
        }
        case 'Long': case 'NumberLong': return new Long(BigInt(str))
        case 'Int32': case 'NumberInt': return new Int32(Number(str) | 0)
        case 'Double': return new Double(Number(str))
        case 'Decimal128': case 'NumberDecimal': return new Decimal(str)
        case 'UUID': return new Binary(btoa(String.fromCharCode(...(str.replaceAll('-', '').match(/../g) ?? []).map(h => parseInt(h, 16)))), '04')
        case 'BinData': return new Binary(typeof b === 'string' ? b : '', int(a).toString(16).padStart(2, '0'))
        case 'Timestamp': return new Timestamp(int(a), int(b))
        case 'RegExp': return new Regex(str, typeof b === 'string' ? [...b].sort().join('') : '')
      }
    } catch (e) {
      if (e instanceof SyntaxFault) throw e
      this.fail(`${name}(…) does not take that`)
    }
    this.fail(`there is no ${name}(…) here`)
  }
}

/** What an object of extended JSON stands for; the object itself where it is none. */
function extended(d: Doc): Value {
  const key = d.keys().next().value
  if (d.size === 0 || d.size > 2 || typeof key !== 'string' || key[0] !== '$') return d
  const v = d.get(key)!
  const of = (x: Value, k: string) => x instanceof Map ? x.get(k) : undefined
  const n = (x: Value | undefined) => x instanceof Int32 || x instanceof Double ? x.n : x instanceof Long ? Number(x.n) : NaN
  if (d.size === 1) {
    switch (key) {
      case '$oid': if (typeof v === 'string' && /^[\da-f]{24}$/i.test(v)) return new ObjectId(v.toLowerCase()); break
      case '$numberInt': if (typeof v === 'string') return new Int32(Number(v)); break
      case '$numberLong': if (typeof v === 'string' && /^-?\d+$/.test(v)) return new Long(BigInt(v)); break
      case '$numberDouble': if (typeof v === 'string') return new Double(Number(v)); break
      case '$numberDecimal': if (typeof v === 'string') return new Decimal(v); break
      case '$date':
        if (v instanceof Long) return new DateTime(Number(v.n))
        if (typeof v === 'string' && Number.isFinite(Date.parse(v))) return new DateTime(Date.parse(v))
        break
      case '$binary': {
        const data = of(v, 'base64'), sub = of(v, 'subType')
        if (typeof data === 'string' && typeof sub === 'string') return new Binary(data, sub.padStart(2, '0'))
        break
      }
      case '$regularExpression': {
        const p = of(v, 'pattern'), o = of(v, 'options')
        if (typeof p === 'string' && typeof o === 'string') return new Regex(p, o)
        break
      }
      case '$timestamp': if (v instanceof Map && Number.isFinite(n(v.get('t')))) return new Timestamp(n(v.get('t')), n(v.get('i'))); break
      case '$minKey': case '$maxKey': return new Other(`{"${key}":1}`, key.slice(1))
      case '$undefined': return new Other('{"$undefined":true}', 'undefined')
      case '$symbol': return new Other(toJSON(d), 'symbol')
      case '$dbPointer': return new Other(toJSON(d), 'dbPointer')
      case '$code': return new Other(toJSON(d), 'javascript')
    }
    return d
  }
  if (key === '$code' && d.has('$scope')) return new Other(toJSON(d), 'javascriptWithScope')
  return d
}
