import assert from 'node:assert/strict'
import { mkdir, mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { createReadOnlyMounts, unmountReadOnly } from './read-only-mounts.ts'

/** Creates a fake namespace that records its commands; `run` fails for commands in `fails`. */
async function setup() {
  const dir = await mkdtemp(join(tmpdir(), 'atoll-read-only-'))
  const ran: string[] = []
  const fails = { now: false }
  return {
    dir,
    ran,
    fails,
    namespace: {
      async run(command: string) {
        ran.push(command)
        if (fails.now) throw new Error('no such folder')
        return ''
      },
      async tryRun(command: string) {
        ran.push(command)
        return { code: 32, signal: null, stdout: '', stderr: 'target is busy' }
      },
    },
    [Symbol.asyncDispose]: () => rm(dir, { recursive: true }),
  }
}

test('a folder is mounted once, however many ask for it', async () => {
  await using world = await setup()
  const find = createReadOnlyMounts(world.namespace, '/built', world.dir)
  const target = join(world.dir, 'e1')
  assert.deepEqual(await Promise.all([find('e1'), find('e1')]), [target, target])
  assert.equal(await find('e1'), target)
  assert.equal(world.ran.length, 1)
})

test('a failed mount is tried again', async () => {
  await using world = await setup()
  const find = createReadOnlyMounts(world.namespace, '/built', world.dir)
  world.fails.now = true
  await assert.rejects(find('e1'))
  world.fails.now = false
  assert.equal(await find('e1'), join(world.dir, 'e1'))
})

test('a mount that is still busy is left for the next time', async () => {
  await using world = await setup()
  // This file keeps the folder from being removed, as files of a busy mount would.
  await mkdir(join(world.dir, 'busy/file'), { recursive: true })
  await mkdir(join(world.dir, 'gone'))
  await mkdir(join(world.dir, 'used'))
  await unmountReadOnly(world.namespace, world.dir, new Set(['used']))
  assert.deepEqual((await readdir(world.dir)).toSorted(), ['busy', 'used'])
})
