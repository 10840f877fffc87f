// Builds the console into ../internal/console/assets, which is kept in the tree. With --check it says whether what is there is what
// would be built, and changes nothing. The same sources and packages give the same bytes on every machine.
import { build } from 'esbuild'
import { gzipSync } from 'node:zlib'
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const here = fileURLToPath(new URL('.', import.meta.url))
const assets = join(here, '..', 'internal', 'console', 'assets')
// All that a browser loads but for the page itself (internal/console/page.html), compressed as it travels.
const maxBytes = 300 * 1000

const result = await build({
  absWorkingDir: here, entryPoints: { app: 'src/main.tsx', style: 'src/style.css' }, outdir: assets, write: false, bundle: true, minify: true,
  format: 'esm', target: ['chrome109', 'firefox115', 'safari16'], jsx: 'automatic', jsxImportSource: 'preact', legalComments: 'none',
  loader: { '.woff2': 'file' }, assetNames: '[name]', charset: 'utf8', logLevel: 'warning',
  // The editor's packages come with modes that nobody asks for; what is not used is left out.
  treeShaking: true,
})
const files = new Map(result.outputFiles.map(f => [f.path.slice(assets.length + 1), Buffer.from(f.contents)]))
files.set('licenses.txt', licenses())

let total = 0
for (const [name, bytes] of files) total += name.endsWith('.woff2') ? bytes.length : gzipSync(bytes, { level: 9 }).length
console.log(`${files.size} files, ${Math.round(total / 1000)} kB compressed`)
if (total > maxBytes) fail(`the console is larger than ${maxBytes / 1000} kB`)

if (process.argv.includes('--check')) {
  const there = new Set(readdirSync(assets))
  for (const [name, bytes] of files) {
    if (!there.delete(name) || !bytes.equals(readFileSync(join(assets, name)))) fail(`internal/console/assets/${name} is not what its sources give: npm run build, in console/`)
  }
  if (there.size > 0) fail(`internal/console/assets has what nothing gives: ${[...there].join(', ')}`)
} else {
  rmSync(assets, { recursive: true, force: true })
  mkdirSync(assets, { recursive: true })
  for (const [name, bytes] of files) writeFileSync(join(assets, name), bytes)
}

// licenses are the texts of the packages that are in the bundle, which their authors want to go along.
function licenses() {
  const names = ['preact', '@preact/signals', '@preact/signals-core', 'uplot', '@fontsource-variable/inter', '@codemirror/state', '@codemirror/view', '@codemirror/commands',
    '@codemirror/autocomplete', '@codemirror/language', '@codemirror/lang-javascript', '@lezer/common', '@lezer/highlight', '@lezer/lr', '@lezer/javascript', 'style-mod', 'w3c-keyname', 'crelt', '@marijn/find-cluster-break']
  const texts = new Map()
  for (const name of names) {
    const dir = join(here, 'node_modules', name)
    const file = readdirSync(dir).find(f => /^licen[sc]e(\.\w+)?$/i.test(f))
    if (!file) fail(`${name} has no license file`)
    const text = readFileSync(join(dir, file), 'utf8').trim()
    texts.set(text, [...(texts.get(text) ?? []), name])
  }
  return Buffer.from([...texts].map(([text, who]) => `${who.join(', ')}\n\n${text}\n`).join('\n' + '-'.repeat(80) + '\n\n'))
}

function fail(why) {
  console.error(why)
  process.exit(1)
}
