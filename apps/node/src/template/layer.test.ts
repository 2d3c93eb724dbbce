import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, mkdtemp, readdir, rm, utimes, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { commitLayer, hashTree, sweepBuilds } from './layer.ts'

async function setup() {
  const dir = await mkdtemp(join(tmpdir(), 'atoll-layer-'))
  return {
    dir,
    async tree(name: string, content = 'hello', mode = 0o644) {
      const root = join(dir, name)
      await mkdir(root)
      await writeFile(join(root, 'file'), content, { mode })
      for (const path of [join(root, 'file'), root]) await utimes(path, 1, 1)
      return root
    },
    [Symbol.asyncDispose]: () => rm(dir, { recursive: true }),
  }
}

test('equal trees have equal hashes, and content and mode count', async () => {
  await using place = await setup()
  const first = await hashTree(await place.tree('a'))
  assert.match(first, /^[0-9a-f]{64}$/)
  assert.equal(await hashTree(await place.tree('b')), first)
  assert.notEqual(await hashTree(await place.tree('c', 'other')), first)
  assert.notEqual(await hashTree(await place.tree('d', 'hello', 0o755)), first)
})

test('a layer built twice is kept once', async () => {
  await using place = await setup()
  const first = await commitLayer(place.dir, await place.tree('.tmp-a'))
  const second = await commitLayer(place.dir, await place.tree('.tmp-b'))
  assert.equal(first, second)
  assert.deepEqual(await readdir(place.dir), [first])
})

test('a folder that programs of a dead builder still write to is left to a later sweep', async () => {
  await using place = await setup()
  const loop = 'while :; do mkdir -p .tmp-base-dead/$((i % 50))/folder; i=$((i + 1)); done'
  const writer = spawn('sh', ['-c', loop], { cwd: place.dir, stdio: 'ignore' })
  const ended = once(writer, 'close')
  try {
    for (let round = 0; round < 30; round += 1) await sweepBuilds(place.dir, '.tmp-base-')
  } finally {
    writer.kill('SIGKILL')
    await ended
  }
  await sweepBuilds(place.dir, '.tmp-base-')
  assert.deepEqual(await readdir(place.dir), [])
})

test('leftovers of dead builders are removed, layers are kept', async () => {
  await using place = await setup()
  await place.tree('.tmp-base-dead')
  await place.tree('sha256-kept')
  await sweepBuilds(place.dir, '.tmp-base-')
  assert.deepEqual(await readdir(place.dir), ['sha256-kept'])
})
