// Pictures of numbers over time.
import { useEffect, useRef, useState } from 'preact/hooks'
import uPlot from 'uplot'
import { isDark } from '../store'
import { count, exact, iso, moment, span } from '../time'
import type { Bucket } from '../expiry'
import { tip, tipFor } from './ui'

const css = (name: string) => getComputedStyle(document.documentElement).getPropertyValue(name).trim()

/** A line over time, with its area; what it says is in `label` for those who do not see it. */
export function Spark(p: { at: number[]; values: (number | null)[]; color?: string; low?: boolean; label: string; format: (n: number) => string; max?: number }) {
  const box = useRef<HTMLDivElement>(null)
  const plot = useRef<uPlot | null>(null)
  const format = useRef(p.format)
  format.current = p.format
  const dark = isDark.value
  useEffect(() => {
    const el = box.current!
    const color = css(p.color ?? '--water-bar')
    const show = (u: uPlot) => {
      const i = u.cursor.idx
      const v = i == null ? null : u.data[1][i]
      if (i == null || v == null) {
        tip.value = null
        return
      }
      const r = el.getBoundingClientRect()
      tip.value = { x: r.x + (u.cursor.left ?? 0), y: r.y + 6, text: `${format.current(v)} · ${moment(u.data[0][i] * 1000, Date.now())}` }
    }
    const u = new uPlot({
      width: el.clientWidth, height: el.clientHeight, legend: { show: false }, padding: [4, 2, 2, 2],
      axes: [{ show: false }, { show: false }], scales: { y: { range: (_u, _lo, hi) => [0, Math.max(p.max ?? 0, hi * 1.12, 1e-9)] } },
      cursor: { y: false, points: { size: 7, fill: color, stroke: color }, drag: { x: false, y: false } },
      series: [{}, { stroke: color, width: 1.7, fill: color + '26', points: { show: false }, spanGaps: false }],
      hooks: { setCursor: [show] },
    }, [p.at, p.values] as uPlot.AlignedData, el)
    plot.current = u
    const resize = new ResizeObserver(() => u.setSize({ width: el.clientWidth, height: el.clientHeight }))
    resize.observe(el)
    const hide = () => { tip.value = null }
    el.addEventListener('pointerleave', hide)
    return () => {
      resize.disconnect()
      el.removeEventListener('pointerleave', hide)
      u.destroy()
      plot.current = null
    }
  }, [dark, p.color, p.max])
  useEffect(() => { plot.current?.setData([p.at, p.values] as uPlot.AlignedData) }, [p.at, p.values])
  return <div class={'spark' + (p.low ? ' low' : '')} role="img" aria-label={p.label} ref={box} />
}

export interface Series { name: string; buckets: Bucket[]; fill: string; opacity?: number }

/**
 * Bars over a stretch of time. Several series lie over one another on one axis. A stretch of bars is chosen by clicking one or dragging over
 * some, or by the keys.
 */
export function Bars(p: {
  series: Series[]; from: number; until: number; now: number; height?: number; label: string; atOnce?: { text: string; count: number }; soonUntil?: number
  chosen?: [number, number] | null; onChoose?: (from: number, until: number) => void
}) {
  const box = useRef<HTMLDivElement>(null)
  const [W, setWidth] = useState(1120)
  useEffect(() => {
    const el = box.current!
    const r = new ResizeObserver(() => setWidth(Math.max(240, el.clientWidth)))
    r.observe(el)
    return () => r.disconnect()
  }, [])
  const H = p.height ?? 180, left = p.atOnce ? 110 : 0, base = H - 26
  const main = p.series[p.series.length - 1]
  const n = Math.max(1, main.buckets.length)
  const step = (W - left) / n
  const most = Math.max(1, p.atOnce?.count ?? 0, ...p.series.flatMap(s => s.buckets.map(b => b.count)))
  const h = (c: number) => c === 0 ? 0 : Math.max(3, c / most * (base - 18))
  const [drag, setDrag] = useState<[number, number] | null>(null)
  const end = useRef<() => void>(() => {})
  const choose = (a: number, b: number) => p.onChoose?.(main.buckets[Math.min(a, b)].from, main.buckets[Math.max(a, b)].to)
  useEffect(() => {
    if (!drag) return
    end.current = () => {
      choose(drag[0], drag[1])
      setDrag(null)
    }
    const up = () => end.current()
    addEventListener('pointerup', up)
    return () => removeEventListener('pointerup', up)
  }, [drag])
  const picked = (i: number) => drag ? i >= Math.min(...drag) && i <= Math.max(...drag) : p.chosen ? main.buckets[i].from >= p.chosen[0] && main.buckets[i].to <= p.chosen[1] : false
  const any = drag !== null || p.chosen != null
  let top = -1
  main.buckets.forEach((b, i) => { if (b.count > 0 && (top < 0 || b.count > main.buckets[top].count)) top = i })
  const sorted = main.buckets.map(b => b.count).sort((a, b) => b - a)
  const stands = top >= 0 && sorted[0] > 2 * (sorted[1] ?? 0) && n > 8
  return <div ref={box}><svg class="pic" viewBox={`0 0 ${W} ${H}`} height={H} role="group" aria-label={p.label}>
    {p.atOnce && <g><rect x={18} y={base - h(p.atOnce.count)} width={58} height={h(p.atOnce.count)} rx={4} fill="var(--late-bar)" /><text x={47} y={base + 17} text-anchor="middle">{p.atOnce.text}</text>
      <text class="ink" x={47} y={base - h(p.atOnce.count) - 6} text-anchor="middle">{count(p.atOnce.count)}</text></g>}
    {p.series.map(s => <g key={s.name}>{s.buckets.map((b, i) => <rect key={i} x={left + i * step + step * .1} y={base - h(b.count)} width={step * .8} height={h(b.count)} rx={Math.min(3, step * .2)}
      fill={s === main && p.soonUntil !== undefined && b.from < p.soonUntil ? 'var(--soon-bar)' : s.fill} opacity={(s.opacity ?? 1) * (any && s === main && !picked(i) ? .35 : 1)} />)}</g>)}
    <line x1={0} x2={W} y1={base + .5} y2={base + .5} stroke="var(--line)" />
    {ticks(p.from, p.until, W / 140).map(([t, text]) => { const x = left + (t - p.from) / (p.until - p.from) * (W - left); return <text key={t} x={Math.min(W - 4, x)} y={base + 17} text-anchor={x > W - 40 ? 'end' : x - left < 20 ? 'start' : 'middle'}>{text}</text> })}
    {stands && <text class="ink" x={Math.min(W - 150, left + top * step + step + 4)} y={Math.max(12, base - h(main.buckets[top].count) + 4)}>{exact(main.buckets[top].count)} in {span(main.buckets[top].to - main.buckets[top].from)}</text>}
    {p.onChoose && main.buckets.map((b, i) => <rect key={i} class="hit" x={left + i * step} y={0} width={step} height={base} tabIndex={b.count > 0 ? 0 : -1} role="button"
      aria-label={`${exact(b.count)} documents go from ${iso(b.from)} to ${iso(b.to)}`}
      {...tipFor(() => <>{exact(b.count)} · {moment(b.from, p.now)} to {moment(b.to, p.now)}</>)}
      onPointerDown={e => { e.preventDefault(); setDrag([i, i]) }} onPointerMove={() => { if (drag && drag[1] !== i) setDrag([drag[0], i]) }}
      onKeyDown={e => { if (e.key === 'Enter' || e.key === ' ') { e.preventDefault(); choose(i, i) } }} />)}
  </svg></div>
}

/** So many places on an axis of time at most, told by their distance from its beginning. */
function ticks(from: number, until: number, most: number): [number, string][] {
  const steps = [1e3, 5e3, 10e3, 30e3, 60e3, 5 * 60e3, 10 * 60e3, 30 * 60e3, 3600e3, 2 * 3600e3, 6 * 3600e3, 12 * 3600e3, 24 * 3600e3, 2 * 24 * 3600e3, 7 * 24 * 3600e3, 30 * 24 * 3600e3, 91 * 24 * 3600e3, 365 * 24 * 3600e3]
  const step = steps.find(s => (until - from) / s <= Math.max(2, Math.min(7, most))) ?? (until - from) / Math.max(2, Math.min(6, most))
  const out: [number, string][] = [[from, 'now']]
  for (let t = step; t <= until - from + 1; t += step) out.push([from + t, '+ ' + (t >= 24 * 3600e3 && t < 48 * 3600e3 ? '1 day' : span(t))])
  return out
}
