// The editor for filters, pipelines and documents. It completes the names of fields and operators.
import { autocompletion, closeBrackets, closeBracketsKeymap, completionKeymap, type Completion, type CompletionContext } from '@codemirror/autocomplete'
import { defaultKeymap, history, historyKeymap, indentWithTab } from '@codemirror/commands'
import { javascriptLanguage } from '@codemirror/lang-javascript'
import { bracketMatching, HighlightStyle, indentOnInput, syntaxHighlighting } from '@codemirror/language'
import { EditorState, Prec, type Extension } from '@codemirror/state'
import { EditorView, keymap, placeholder } from '@codemirror/view'
import { tags } from '@lezer/highlight'
import { useEffect, useRef } from 'preact/hooks'

const nonce = document.querySelector<HTMLMetaElement>('meta[name=csp-nonce]')?.content ?? ''

const colours = HighlightStyle.define([
  { tag: [tags.propertyName, tags.definition(tags.propertyName)], color: 'var(--water)' }, { tag: tags.string, color: 'var(--soon)' },
  { tag: [tags.variableName, tags.className], color: 'var(--held)' }, { tag: [tags.number, tags.bool, tags.null], color: 'var(--ink)' }, { tag: tags.comment, color: 'var(--faint)' },
])
const look = EditorView.theme({
  '&': { fontSize: '12.5px', color: 'var(--ink)' }, '.cm-content': { fontFamily: "'JetBrains Mono', ui-monospace, SFMono-Regular, Menlo, monospace", padding: '7px 4px', caretColor: 'var(--ink)' },
  '.cm-cursor': { borderLeftColor: 'var(--ink)' }, '&.cm-focused .cm-selectionBackground, .cm-selectionBackground, ::selection': { backgroundColor: 'color-mix(in srgb, var(--water-bar) 30%, transparent) !important' },
  '.cm-placeholder': { color: 'var(--faint)' }, '&.cm-focused .cm-matchingBracket': { backgroundColor: 'var(--water-soft)', outline: 'none' },
})

const filterOperators = ['$eq', '$ne', '$gt', '$gte', '$lt', '$lte', '$in', '$nin', '$and', '$or', '$nor', '$not', '$exists', '$type', '$expr', '$regex', '$mod', '$all', '$elemMatch', '$size', '$geoWithin', '$geoIntersects', '$near', '$nearSphere', '$text', '$jsonSchema', '$bitsAllSet', '$bitsAnySet', '$comment']
const stages = ['$addFields', '$bucket', '$bucketAuto', '$collStats', '$count', '$densify', '$ebbTTL', '$facet', '$fill', '$geoNear', '$graphLookup', '$group', '$indexStats', '$limit', '$lookup', '$match', '$merge', '$out', '$project', '$redact', '$replaceRoot', '$replaceWith', '$sample', '$set', '$setWindowFields', '$skip', '$sort', '$sortByCount', '$unionWith', '$unset', '$unwind']
const accumulators = ['$sum', '$avg', '$min', '$max', '$first', '$last', '$push', '$addToSet', '$stdDevPop', '$count', '$median', '$percentile', '$topN', '$bottomN', '$mergeObjects']
const expressions = ['$abs', '$add', '$arrayElemAt', '$ceil', '$concat', '$concatArrays', '$cond', '$convert', '$dateAdd', '$dateDiff', '$dateToString', '$dateTrunc', '$divide', '$dayOfWeek', '$filter', '$floor', '$getField', '$hour', '$ifNull', '$indexOfArray', '$isArray', '$isNumber', '$let', '$literal', '$ltrim', '$map', '$month', '$multiply', '$objectToArray', '$arrayToObject', '$range', '$reduce', '$regexMatch', '$replaceAll', '$round', '$setUnion', '$slice', '$split', '$strLenCP', '$substrCP', '$subtract', '$switch', '$toDate', '$toDouble', '$toInt', '$toLower', '$toObjectId', '$toString', '$toUpper', '$trim', '$type', '$year', '$zip', '$$NOW', '$$ROOT']
const constructors = ['ObjectId("")', 'ISODate("")', 'Long("")', 'Decimal128("")', 'UUID("")', 'true', 'false', 'null']

export type Kind = 'filter' | 'pipeline' | 'document'

function complete(kind: Kind, fields: () => string[]) {
  return (c: CompletionContext) => {
    const word = c.matchBefore(/[$\w.]+/)
    if (!word && !c.explicit) return null
    const option = (detail: string, type: string) => (label: string): Completion => ({ label, detail, type, boost: type === 'property' ? 2 : 0 })
    const operators = kind === 'filter' ? filterOperators.map(option('operator', 'keyword'))
      : kind === 'pipeline' ? [...stages.map(option('stage', 'keyword')), ...filterOperators.map(option('operator', 'keyword')), ...accumulators.map(option('accumulator', 'function')), ...expressions.map(option('expression', 'function'))] : []
    const paths = fields()
    const seen = new Set<string>()
    const options = [...paths.map(option('field', 'property')), ...(kind === 'pipeline' ? paths.map(f => option('path', 'property')('"$' + f + '"')) : []), ...operators, ...constructors.map(option('value', 'constant'))]
      .filter(o => !seen.has(o.label) && seen.add(o.label))
    return { from: word?.from ?? c.pos, options, validFor: /^["$\w.]*$/ }
  }
}

/**
 * A field for a text in the language. Enter runs a text of one line; Control-Enter any. What is typed is told by onChange; only another `value` from
 * outside takes its place, so that what is typed quickly is never overtaken by what was typed before.
 */
export function Editor(p: { value: string; kind: Kind; label: string; lines?: boolean; tall?: boolean; bad?: boolean; hint?: string; fields?: string[]; onChange: (v: string) => void; onRun?: () => void }) {
  const box = useRef<HTMLDivElement>(null)
  const view = useRef<EditorView | null>(null)
  const latest = useRef(p)
  latest.current = p
  useEffect(() => {
    const run = () => {
      latest.current.onRun?.()
      return true
    }
    const extensions: Extension[] = [
      EditorView.cspNonce.of(nonce), history(), closeBrackets(), bracketMatching(), indentOnInput(), javascriptLanguage, syntaxHighlighting(colours), look, EditorView.lineWrapping,
      autocompletion({ override: [complete(p.kind, () => latest.current.fields ?? [])], icons: false }), placeholder(p.hint ?? ''),
      Prec.high(keymap.of([{ key: 'Mod-Enter', run }])), keymap.of(completionKeymap),
      ...(p.lines ? [keymap.of([{ key: 'Escape', run: v => { v.contentDOM.blur(); return true } }, indentWithTab])] : [keymap.of([{ key: 'Enter', run }])]),
      keymap.of([...closeBracketsKeymap, ...defaultKeymap, ...historyKeymap]),
      EditorView.contentAttributes.of({ 'aria-label': p.label, spellcheck: 'false', autocapitalize: 'off' }),
      EditorView.updateListener.of(u => { if (u.docChanged) latest.current.onChange(u.state.doc.toString()) }),
    ]
    view.current = new EditorView({ parent: box.current!, state: EditorState.create({ doc: p.value, extensions }) })
    return () => view.current?.destroy()
  }, [])
  useEffect(() => {
    const v = view.current
    if (v && v.state.doc.toString() !== p.value) v.dispatch({ changes: { from: 0, to: v.state.doc.length, insert: p.value } })
  }, [p.value])
  return <div ref={box} class={'editor grow' + (p.tall ? ' tall' : '') + (p.bad ? ' bad' : '')} />
}
