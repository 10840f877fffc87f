// What many operations have in common: the command without its values, and an index that would serve it.

type Any = any

/** The stages or statements of a command, if they are a list: a client may have sent anything. */
const listOf = (v: Any): Any[] => Array.isArray(v) ? v : []
/** A name, or the shape of what stands in the place of one. */
const nameOf = (v: Any): string => typeof v === 'string' ? v : v === undefined ? '' : shapeOf(v)

const isPlain = (v: Any) => typeof v === 'object' && v !== null && !Array.isArray(v)

/** The filter, pipeline or update with ? in the place of each value. */
export function shapeOf(v: Any, depth = 0): string {
  if (depth > 8) return '…'
  if (Array.isArray(v)) return v.some(isPlain) ? `[ ${v.slice(0, 12).map(x => shapeOf(x, depth + 1)).join(', ')} ]` : '[?]'
  if (!isPlain(v)) return '?'
  const keys = Object.keys(v)
  if (keys.length === 1 && /^\$(oid|date|numberLong|numberDouble|numberInt|numberDecimal|binary|timestamp|regularExpression|uuid|minKey|maxKey)$/.test(keys[0])) return '?'
  return keys.length === 0 ? '{}' : `{ ${keys.map(k => `${k}: ${shapeOf(v[k], depth + 1)}`).join(', ')} }`
}

/** A command in short: what it does with which parts. */
export function commandShape(c: Any): string {
  if (!isPlain(c)) return ''
  const op = Object.keys(c)[0] ?? ''
  const sort = (s: Any) => isPlain(s) && Object.keys(s).length ? ` sort ${JSON.stringify(s).replace(/"/g, '').replace(/([:,{])/g, '$1 ').replace(/}/g, ' }')}` : ''
  switch (op) {
    case 'find': return `find ${shapeOf(c.filter ?? {})}${sort(c.sort)}`
    case 'aggregate': return `aggregate [ ${listOf(c.pipeline).map((s: Any) => { const k = Object.keys(s ?? {})[0]; return k === '$match' ? `$match ${shapeOf(s.$match)}` : k }).join(', ')} ]`
    case 'count': case 'distinct': return `${op} ${nameOf(c.key)} ${shapeOf(c.query ?? {})}`.replace('  ', ' ')
    case 'findAndModify': case 'findandmodify': return `findAndModify ${shapeOf(c.query ?? {})}${sort(c.sort)}`
    case 'q': return `${c.u !== undefined ? 'update' : 'delete'} ${shapeOf(c.q)}`
    case 'update': case 'delete': return `${op} ${shapeOf(listOf(c.updates ?? c.deletes)[0]?.q ?? {})}`
    case 'insert': return 'insert'
    case 'getMore': return `getMore of ${nameOf(c.collection)}`
  }
  return op
}

// ---- shapes of $queryStats, in which "?type" stands for each value ----

/** A shape in the words of commandShape. */
export function statsShape(q: Any): string { return commandShape(commandOf(q, v => v)) }

/** A command of the shape, with values that have the types of those that were asked for. Which they were is not known. */
export function exampleOf(q: Any): Any { return commandOf(q, valueFor) }

function commandOf(q: Any, value: (v: Any) => Any): Any {
  const coll = q?.cmdNs?.coll, put = (v: Any): Any => fill(v, value)
  switch (q?.command) {
    case 'find': return { find: coll, filter: put(q.filter ?? {}), ...(q.sort ? { sort: q.sort } : {}), ...(q.projection ? { projection: put(q.projection) } : {}) }
    case 'distinct': return { distinct: coll, key: q.key, query: put(q.query ?? {}) }
    case 'aggregate': return { aggregate: coll, pipeline: put(q.pipeline ?? []) }
  }
  return {}
}

function fill(v: Any, value: (v: Any) => Any): Any {
  if (typeof v === 'string' && v.startsWith('?')) return value(v)
  if (Array.isArray(v)) return v.map(x => fill(x, value))
  if (!isPlain(v)) return v
  const entries = Object.entries(v)
  // The shape spells out what is equal; commands leave it out.
  if (entries.length === 1 && entries[0][0] === '$eq') return fill(entries[0][1], value)
  return Object.fromEntries(entries.map(([k, x]) => [k, fill(x, value)]))
}

function valueFor(mark: Any): Any {
  const type = String(mark).slice(1)
  if (type.startsWith('array')) return []
  switch (type) {
    case 'number': return 1
    case 'string': return 'a'
    case 'bool': return true
    case 'date': return new Date(0)
    case 'object': return {}
    case 'null': return null
  }
  return 'a'
}

/** The fields of an index that would serve a command: what is equal, then the order, then ranges. Null where nothing is to be gained. */
export function suggest(c: Any): string | null {
  if (!isPlain(c)) return null
  const filter = c.filter ?? c.query ?? c.q ?? listOf(c.updates ?? c.deletes)[0]?.q ?? listOf(c.pipeline)[0]?.$match
  const sort = c.sort ?? listOf(c.pipeline).find((s: Any) => s?.$sort)?.$sort
  if (!isPlain(filter)) return null
  const equal: string[] = [], range: string[] = []
  for (const [k, v] of Object.entries<Any>(filter)) {
    if (k.startsWith('$')) {
      if (k === '$and' && Array.isArray(v)) for (const part of v) for (const [k2, v2] of Object.entries<Any>(part ?? {})) if (!k2.startsWith('$')) (isRange(v2) ? range : equal).push(k2)
      continue
    }
    (isRange(v) ? range : equal).push(k)
  }
  const order = isPlain(sort) ? Object.entries<Any>(sort).filter(([k, v]) => !equal.includes(k) && (v === 1 || v === -1)) : []
  const rest = range.filter(k => !equal.includes(k) && !order.some(([o]) => o === k))
  const all: [string, number][] = [...equal.map(k => [k, 1] as [string, number]), ...order.map(([k, v]) => [k, v] as [string, number]), ...rest.map(k => [k, 1] as [string, number])]
  if (all.length === 0 || all.length === 1 && all[0][0] === '_id') return null
  const name = (k: string) => /^[A-Za-z_$][\w$]*$/.test(k) ? k : JSON.stringify(k)
  return `{ ${all.slice(0, 6).map(([k, v]) => `${name(k)}: ${v}`).join(', ')} }`
}

const isRange = (v: Any) => isPlain(v) && Object.keys(v).some(k => /^\$(gt|gte|lt|lte|ne|nin|exists|regex|not|type|mod|size|all|elemMatch)$/.test(k))
