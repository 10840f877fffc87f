process.env.EBB_CONSOLE = process.argv[2]; process.env.EBB_URI = process.argv[3]
const { page, end } = await import('./browser.mjs')
let n = 0, bytes = 0
const p = await page('#/', { prepare: p => { p.on('request', () => n++); p.on('response', async r => { try { bytes += (await r.body()).length } catch {} }) } })
await p.waitForTimeout(Number(process.argv[4]) * 1000)
console.log('requests', n, 'bytes', bytes)
await end()
