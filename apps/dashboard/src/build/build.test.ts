import assert from 'node:assert/strict'
import { test } from 'node:test'
import { gunzipSync } from 'node:zlib'
import { buildDashboard } from './build.ts'

test('the bundle is small, complete, and not built twice', async () => {
  const { script, style, assets } = await buildDashboard()
  const sizes = new Map(assets.map(({ path, gzip }) => [path, Buffer.byteLength(gzip, 'base64')]))
  const total = [...sizes.values()].reduce((sum, size) => sum + size, 0)
  assert.ok(sizes.has(script) && sizes.has(style) && sizes.has('/assets/icon.svg'))
  // The entry imports its chunks at once; those of other pages, the terminal and the plots come later.
  const seen = new Set<string>()
  const load = (path: string) => {
    if (seen.has(path)) return
    seen.add(path)
    const asset = assets.find((candidate) => candidate.path === path)
    assert.ok(asset, path)
    const code = gunzipSync(Buffer.from(asset.gzip, 'base64')).toString('utf8')
    for (const [, name] of code.matchAll(/(?:from|import)\s*"\.\/([\w.-]+)"/g))
      load(`/assets/${name}`)
  }
  load(script)
  const first = [style, ...seen].reduce((sum, path) => sum + (sizes.get(path) ?? 0), 0)
  assert.ok(first <= 80 * 1024, `first load: ${first} bytes`)
  assert.ok(total <= 350 * 1024, `all: ${total} bytes`)
  let builds = 0
  await buildDashboard(() => (builds += 1))
  assert.equal(builds, 0)
})

test('no asset names another server', async () => {
  const { assets } = await buildDashboard()
  for (const { path, gzip } of assets) {
    const text = gunzipSync(Buffer.from(gzip, 'base64')).toString('utf8')
    const addresses = [...text.matchAll(/https?:\/\/([\w.-]+)/g)].map((match) => match[1])
    const others = addresses.filter((name) => name !== 'www.w3.org')
    assert.deepEqual(others, [], path)
  }
})
