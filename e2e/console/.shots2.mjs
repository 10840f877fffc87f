import { mkdirSync } from 'node:fs'
process.env.EBB_CONSOLE ??= 'http://127.0.0.1:28101/'; process.env.EBB_URI ??= 'mongodb://127.0.0.1:28100/?directConnection=true'
const { page, accessibility, faults, end } = await import('./browser.mjs')
const out = '/tmp/cw/shots'
const shot = async (p, n) => { await p.screenshot({ path: `${out}/${n}.png` }); const a = await accessibility(p); if (a.length) console.log(n, a) }
for (const theme of process.argv.slice(2)) {
  const open = async (place, act, n) => { const p = await page(place, { colorScheme: theme, viewport: { width: 1280, height: 900 } }); await p.waitForTimeout(1500); try { await act(p); await p.waitForTimeout(900); await shot(p, `${n}-${theme}`) } catch (e) { console.log(n, e.message.split('\n')[0]) } await p.context().close() }
  await open('#/', async p => {}, 'x-held')
  await open('#/', async p => p.getByRole('button', { name: 'Release…' }).click(), 'x-release')
  await open('#/operations/slow', async p => {}, 'x-slow')
  await open('#/operations/slow?of=all', async p => {}, 'x-shapes')
  await open('#/operations/slow?of=all', async p => p.getByRole('button', { name: /^Plan/ }).first().click(), 'x-plan')
  await open('#/settings/roles', async p => p.getByRole('button', { name: 'Change cleaner' }).click(), 'x-role')
  await open('#/settings/users', async p => p.getByRole('button', { name: 'Add a user' }).click(), 'x-user')
  await open('#/settings/parameters?q=ttl', async p => p.getByRole('button', { name: 'Change ttlMonitorSleepSecs' }).click(), 'x-parameter')
  await open('#/c/shop/orders/documents', async p => { await p.getByLabel(/^Select /).nth(1).check(); await p.getByLabel(/^Select /).nth(2).check(); await p.getByRole('button', { name: 'Delete' }).click() }, 'x-delete')
  await open('#/c/shop/sessions/documents', async p => { await p.getByLabel(/^Select /).nth(1).check(); await p.getByRole('button', { name: 'Keep for…' }).click() }, 'x-keep')
  await open('#/c/shop/orders/documents', async p => p.getByRole('button', { name: 'Insert' }).click(), 'x-insert')
  await open('#/c/shop/orders/documents', async p => p.getByRole('button', { name: 'Export' }).click(), 'x-export')
  await open('#/c/shop/sessions/indexes', async p => p.getByRole('button', { name: 'Drop user_1' }).click(), 'x-drop')
  await open('#/operations/running?own=1', async p => p.getByRole('button', { name: /^End operation/ }).first().click(), 'x-end')
  await open('#/storage?open=shop.sessions', async p => {}, 'x-storage')
  await open('#/', async p => { await p.keyboard.press('/'); await p.keyboard.type('s') }, 'x-find')
}
console.log(faults); await end()
