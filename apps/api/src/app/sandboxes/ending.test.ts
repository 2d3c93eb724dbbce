import assert from 'node:assert/strict'
import { test } from 'node:test'
import { systemClock } from '@atoll/kit/clock'
import { diskFull } from '@atoll/kit/disk-full'
import { Fault } from '@atoll/kit/fault'
import { silentLogger } from '@atoll/kit/log'
import type { OnNode } from '../../domain/sandboxes/sandbox-pause.ts'
import { createEnding } from './ending.ts'
import type { OnOneNode } from './ending.ts'

/** Node and store share a full disk, which has space for a record only after a deletion. */
function setup(failure: Fault) {
  const done: string[] = []
  const ending = createEnding({
    store: {
      find: async (id) => ({ id, nodeId: 'n1', generation: 1 }),
      async update() {
        if (done.includes('killed')) return void done.push('written')
        throw failure
      },
    },
    fleet: {
      of: () => ({ find: async () => undefined, kill: async () => void done.push('killed') }),
    },
    clock: systemClock,
    log: silentLogger,
  })
  return { ending, done }
}

test('on a full disk a sandbox is deleted before its record is written', async () => {
  const { ending, done } = setup(new Fault('unavailable', diskFull, 'full'))
  await ending.kill('i1', 'was killed')
  assert.deepEqual(done, ['killed', 'written'])
})

test('while the store fails for another reason, no sandbox is deleted', async () => {
  const { ending, done } = setup(new Fault('unavailable', 'store_unavailable', 'away'))
  await assert.rejects(ending.kill('i1', 'was killed'), /away/)
  assert.deepEqual(done, [])
})

test('a node that forgets a sandbox which lives elsewhere leaves its record alone', async () => {
  const { ending, done } = setup(new Fault('internal', 'unexpected', 'the record must not change'))
  await ending.finish({ id: 'i1', nodeId: 'n1', generation: 1, isElsewhere: true })
  assert.deepEqual(done, ['killed'])
})

/** A node that has the sandbox in this state. Returns the kills that it got from the end of a sandbox. */
async function endOn(found: OnNode, sandbox: Partial<OnOneNode> = {}) {
  const kills: Partial<OnOneNode>[] = []
  const ending = createEnding({
    store: { find: async () => undefined, update: async () => undefined },
    fleet: {
      of: () => ({ find: async () => found, kill: async (request) => void kills.push(request) }),
    },
    clock: systemClock,
    log: silentLogger,
  })
  const finished = ending.finish({ id: 'i1', nodeId: 'n1', generation: 1, ...sandbox })
  await finished.catch((error: unknown) => assert.match(String(error), /is being paused/))
  return kills.map(({ isElsewhere = false }) => (isElsewhere ? 'on the node' : 'with its objects'))
}

const known = { kept: 'memory', generation: 1 } as const

test('an end that no client asked for deletes neither a paused sandbox nor objects of one that does not run', async () => {
  assert.deepEqual(await endOn({ state: 'paused', ...known }), [])
  assert.deepEqual(await endOn({ state: 'running', ...known, isPausing: true }), [])
  assert.deepEqual(await endOn({ state: 'running', ...known }), ['with its objects'])
  assert.deepEqual(await endOn({ state: 'quarantined' }), ['on the node'])
  assert.deepEqual(await endOn(undefined), ['on the node'])
})

test('an end that a client asked for deletes everything, in any state', async () => {
  for (const state of [
    { state: 'paused', ...known },
    { state: 'running', ...known, isPausing: true },
    { state: 'quarantined' },
    undefined,
  ] as const) {
    assert.deepEqual(await endOn(state, { isKillRequested: true }), ['with its objects'])
  }
})

test('outdated content on a node is deleted although it is paused', async () => {
  const paused = { state: 'paused', ...known } as const
  assert.deepEqual(await endOn(paused, { isSuperseded: true, isElsewhere: true }), ['on the node'])
})
