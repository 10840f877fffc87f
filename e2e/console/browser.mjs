// What the console's tests share: a browser, a client of the database beside it, and checks in the form of the other clients.
import { execFileSync } from 'node:child_process'
import { createRequire } from 'node:module'
import { chromium } from 'playwright-core'
import { MongoClient } from 'mongodb'

export { check, done, eventually } from '../node/tap.mjs'

export const url = process.env.EBB_CONSOLE
export const client = await MongoClient.connect(process.env.EBB_LOGIN ?? process.env.EBB_URI)

function chromiumPath() {
  for (const name of ['chromium', 'chromium-browser', 'google-chrome']) {
    try { return execFileSync('which', [name], { encoding: 'utf8' }).trim() } catch { /* the next one */ }
  }
  throw new Error('there is no Chromium')
}

export const browser = await chromium.launch({ executablePath: chromiumPath(), args: process.getuid?.() === 0 ? ['--no-sandbox'] : [] })

/** What went wrong in pages, and what they asked of others than the server. */
export const faults = []

// Errors that are no faults: replies with a status that a check may want, and what the browser says when another test makes a network of its own
// meanwhile (e2e/chaos), upon which it asks again.
const noFault = /status of 4\d\d|net::ERR_NETWORK_CHANGED/

/** A page in a browser of its own, at a place of the console; prepare sees it before it is there. */
export async function page(place = '#/', { prepare, ...options } = {}) {
  const context = await browser.newContext({ viewport: { width: 1360, height: 900 }, ...options })
  context.setDefaultTimeout(15_000)
  const p = await context.newPage()
  p.on('pageerror', e => faults.push(`error in the page: ${e.message}`))
  p.on('console', m => { if (m.type() === 'error' && !noFault.test(m.text())) faults.push(`the browser says: ${m.text()}`) })
  p.on('request', r => { if (!r.url().startsWith(url) && !/^(data|blob):/.test(r.url())) faults.push(`asked of another: ${r.url()}`) })
  if (prepare) prepare(p)
  p.on('dialog', d => { faults.push(`a script ran: ${d.message()}`); void d.dismiss() })
  // Who works on the console has its bundle tried without building the server each time.
  if (process.env.EBB_ASSETS) for (const f of ['app.js', 'style.css']) await p.route('**/' + f, r => r.fulfill({ path: `${process.env.EBB_ASSETS}/${f}` }))
  await p.goto(url + place)
  return p
}

const axe = createRequire(import.meta.url).resolve('axe-core/axe.min.js')

/** The serious faults that axe finds in the page as it is. */
export async function accessibility(p) {
  const session = await p.context().newCDPSession(p)
  const source = (await import('node:fs')).readFileSync(axe, 'utf8')
  // It is put in from outside, past the page's own rules about scripts.
  await session.send('Runtime.evaluate', { expression: source })
  const result = await p.evaluate(() => axe.run(document, { resultTypes: ['violations'] }))
  return result.violations.filter(v => v.impact === 'serious' || v.impact === 'critical').map(v => `${v.id}: ${v.help}: ${v.nodes.slice(0, 3).map(n => n.target.join(' ') + ' ' + (n.any[0]?.message ?? '')).join(' | ')}`)
}

export async function end() {
  await browser.close()
  await client.close()
}
