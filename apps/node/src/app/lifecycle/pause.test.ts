import assert from 'node:assert/strict'
import { test } from 'node:test'
import { waitFor } from '@atoll/kit/wait'
import { simulateNode } from '../../sim/node.ts'

test('a paused sandbox has neither processes nor a slot, and resumes under its ID', async () => {
  const { create, sandboxes, alive, slots, records, introduced, seen } = simulateNode()
  const { record } = await create()
  await sandboxes.pause('i1', { keepMemory: true })
  await sandboxes.settle()
  assert.deepEqual([alive.size, slots.size], [0, 0])
  assert.deepEqual(
    [records.get(record.cellId)?.phase, records.get(record.cellId)?.memory],
    ['paused', 'runsc 1'],
  )
  assert.equal(sandboxes.paused().length, 1)
  await sandboxes.pause('i1', { keepMemory: true })
  const back = await sandboxes.resume({ sandboxId: 'i1', accessToken: undefined, boot: false })
  assert.deepEqual([back.record.phase, back.record.memory], ['running', undefined])
  assert.deepEqual([alive.size, slots.size, sandboxes.paused().length], [1, 1, 0])
  assert.deepEqual(
    introduced.map(({ sandboxId }) => sandboxId),
    ['i1', 'i1'],
  )
  await waitFor('four events', () => seen.length === 4)
  assert.deepEqual(
    seen.map(({ kind }) => kind),
    ['started', 'pausing', 'paused', 'started'],
  )
  assert.equal(
    await sandboxes.resume({ sandboxId: 'i1', accessToken: undefined, boot: false }),
    back,
  )
})

test('a pause is answered when its state is durable, and the next operation waits for the processes to end', async () => {
  const flushed = Promise.withResolvers<void>()
  const ended = Promise.withResolvers<void>()
  const { create, sandboxes, records, errors } = simulateNode({
    overrides: {
      disks: { flush: () => flushed.promise },
      halt: () => ended.promise,
    },
  })
  const { record } = await create()
  const paused = sandboxes.pause('i1', { keepMemory: true })
  await waitFor('the pause to begin', () => sandboxes.isPausing('i1'))
  assert.notEqual(records.get(record.cellId)?.phase, 'paused')
  flushed.resolve()
  assert.deepEqual(await paused, { sizeBytes: 5 })
  assert.equal(records.get(record.cellId)?.phase, 'paused')
  let isBack = false
  const request = { sandboxId: 'i1', accessToken: undefined, boot: false }
  const resumed = sandboxes.resume(request).then(() => (isBack = true))
  await new Promise(setImmediate)
  assert.equal(isBack, false)
  ended.reject(new Error('busy'))
  await resumed
  assert.match(String(errors), /busy/)
})

test('a resume copies the disk that the memory belongs to and keeps only the copy', async () => {
  const { create, sandboxes, files, records } = simulateNode()
  const { record } = await create()
  await sandboxes.pause('i1', { keepMemory: true })
  const folder = `/cells/${record.cellId}`
  assert.deepEqual([...files.keys()].toSorted(), [`${folder}/disk.img`, `${folder}/memory`])
  const resumed = await sandboxes.resume({ sandboxId: 'i1', accessToken: undefined, boot: false })
  const { cellId } = resumed.record
  assert.notEqual(cellId, record.cellId)
  assert.deepEqual(
    [[...files.keys()], [...records.keys()]],
    [[`/cells/${cellId}/disk.img`], [cellId]],
  )
})

test('a resume that fails leaves the sandbox paused and unchanged', async () => {
  let isSilent = false
  const { create, sandboxes, files, records, slots } = simulateNode({
    overrides: {
      initEnvd: () => (isSilent ? Promise.reject(new Error('silent')) : Promise.resolve()),
    },
  })
  const { record } = await create()
  await sandboxes.pause('i1', { keepMemory: true })
  const [filesBefore, recordBefore] = [[...files.keys()], records.get(record.cellId)]
  isSilent = true
  const request = { sandboxId: 'i1', accessToken: undefined, boot: false }
  await assert.rejects(sandboxes.resume(request))
  assert.deepEqual(
    [[...files.keys()], records.get(record.cellId), slots.size],
    [filesBefore, recordBefore, 0],
  )
  isSilent = false
  await sandboxes.resume(request)
})

test('a pause that cannot write the memory leaves the sandbox running', async () => {
  const seenPausing: boolean[] = []
  const { create, sandboxes, frozen, records, files, seen } = simulateNode({
    overrides: {
      runtime: {
        async saveMemory() {
          seenPausing.push(sandboxes.isPausing('i1'))
          throw new Error('no room')
        },
      },
    },
  })
  const { record } = await create()
  await assert.rejects(sandboxes.pause('i1', { keepMemory: true }), { message: 'no room' })
  assert.deepEqual([seenPausing, sandboxes.isPausing('i1')], [[true], false])
  await waitFor('three events', () => seen.length === 3)
  assert.deepEqual(
    seen.map(({ kind }) => kind),
    ['started', 'pausing', 'started'],
  )
  assert.deepEqual([frozen.size, records.get(record.cellId)?.phase], [0, 'running'])
  assert.deepEqual([...files.keys()], [`/cells/${record.cellId}/disk.img`])
  assert.deepEqual(await sandboxes.pause('i1', { keepMemory: false }), { sizeBytes: 3 })
  assert.equal(records.get(record.cellId)?.memory, undefined)
})

test('a pause that cannot write its record leaves the sandbox running and thawed', async () => {
  let isFull = true
  const { create, sandboxes, frozen, files, records } = simulateNode({
    overrides: {
      beforeUpdate({ phase }) {
        if (isFull && phase === 'paused') throw new Error('no room')
      },
    },
  })
  const { record } = await create()
  await assert.rejects(sandboxes.pause('i1', { keepMemory: true }), { message: 'no room' })
  assert.deepEqual([frozen.size, records.get(record.cellId)?.phase], [0, 'running'])
  assert.deepEqual([...files.keys()], [`/cells/${record.cellId}/disk.img`])
  isFull = false
  await sandboxes.pause('i1', { keepMemory: true })
  assert.equal(sandboxes.paused().length, 1)
})

test('a failed cleanup after a resume does not undo the resume', async () => {
  const { create, sandboxes, alive } = simulateNode({
    overrides: {
      tidy: ({ phase }) =>
        phase === 'running' ? Promise.reject(new Error('busy')) : Promise.resolve(),
    },
  })
  await create()
  await sandboxes.pause('i1', { keepMemory: true })
  await sandboxes.resume({ sandboxId: 'i1', accessToken: undefined, boot: false })
  assert.deepEqual([sandboxes.running().length, alive.size], [1, 1])
})

test('a resume that fails removes its partial copy of the disk', async () => {
  const { create, sandboxes, files, records, slots } = simulateNode({
    overrides: {
      disks: {
        async copy(_from, to) {
          files.set(to, 'half')
          throw new Error('no room')
        },
      },
    },
  })
  const { record } = await create()
  await sandboxes.pause('i1', { keepMemory: true })
  const before = [...files.keys()]
  const request = { sandboxId: 'i1', accessToken: undefined, boot: false }
  await assert.rejects(sandboxes.resume(request), { message: 'no room' })
  assert.deepEqual([[...files.keys()], slots.size], [before, 0])
  assert.equal(records.get(record.cellId)?.phase, 'paused')
})

test('a failed resume reports its first error, also when the cleanup fails', async () => {
  let isSilent = false
  const { create, sandboxes } = simulateNode({
    overrides: {
      initEnvd: () => (isSilent ? Promise.reject(new Error('silent')) : Promise.resolve()),
      tidy: () => (isSilent ? Promise.reject(new Error('busy')) : Promise.resolve()),
    },
  })
  await create()
  await sandboxes.pause('i1', { keepMemory: true })
  isSilent = true
  const request = { sandboxId: 'i1', accessToken: undefined, boot: false }
  await assert.rejects(sandboxes.resume(request), { message: 'silent' })
})

test('memory of another runtime release is refused, and a boot from the files works', async () => {
  let format = 'runsc 1'
  const { create, sandboxes } = simulateNode({
    overrides: { runtime: { memoryFormat: async () => format } },
  })
  await create()
  await sandboxes.pause('i1', { keepMemory: true })
  format = 'runsc 2'
  const request = { sandboxId: 'i1', accessToken: undefined }
  await assert.rejects(sandboxes.resume({ ...request, boot: false }), {
    reason: 'memory_unreadable',
  })
  await sandboxes.resume({ ...request, boot: true })
})

test('memory is labelled with the release that runs the sandbox, not with the installed one', async () => {
  let release = 'runsc 1'
  const { create, sandboxes, snapshots } = simulateNode({
    overrides: { runtime: { release: async () => release, memoryFormat: async () => release } },
  })
  await create()
  release = 'runsc 2'
  await sandboxes.snapshot('i1', 's1')
  assert.equal((await snapshots.find('s1'))?.memory, 'runsc 1')
  await assert.rejects(create({ sandboxId: 'i2', snapshotId: 's1' }), {
    reason: 'memory_unreadable',
  })
  await sandboxes.pause('i1', { keepMemory: true })
  const before = sandboxes.paused()
  const request = { sandboxId: 'i1', accessToken: undefined }
  await assert.rejects(sandboxes.resume({ ...request, boot: false }), {
    message: /written by runsc 1, and this node has runsc 2/,
  })
  assert.deepEqual(sandboxes.paused(), before)
  await sandboxes.resume({ ...request, boot: true })
  await sandboxes.pause('i1', { keepMemory: true })
  await sandboxes.resume({ ...request, boot: false })
})

test('a pause returns the size, also when repeated, and never fails because of the size', async () => {
  const { create, sandboxes } = simulateNode()
  await create()
  assert.deepEqual(await sandboxes.pause('i1', { keepMemory: true }), { sizeBytes: 5 })
  assert.deepEqual(await sandboxes.pause('i1', { keepMemory: true }), { sizeBytes: 5 })
  const blind = simulateNode({
    overrides: { keptBytes: () => Promise.reject(new Error('no such file')) },
  })
  await blind.create()
  assert.deepEqual(await blind.sandboxes.pause('i1', { keepMemory: true }), { sizeBytes: 0 })
})

test('a runtime that cannot save memory refuses to, and keeps the files', async () => {
  const { create, sandboxes } = simulateNode({ memoryFormat: '' })
  await create()
  await assert.rejects(sandboxes.pause('i1', { keepMemory: true }), { reason: 'memory_not_kept' })
  await sandboxes.pause('i1', { keepMemory: false })
  await sandboxes.resume({ sandboxId: 'i1', accessToken: undefined, boot: false })
  assert.deepEqual(await sandboxes.snapshot('i1', 's1'), { keepsMemory: false, sizeBytes: 7 })
})

test('concurrent kill, pause and resume of one sandbox run one after another', async () => {
  const { create, sandboxes, records, slots, alive } = simulateNode()
  await create()
  const request = { sandboxId: 'i1', accessToken: undefined, boot: false }
  await Promise.allSettled([
    sandboxes.pause('i1', { keepMemory: true }),
    sandboxes.resume(request),
    sandboxes.pause('i1', { keepMemory: true }),
    sandboxes.kill('i1'),
    sandboxes.resume(request),
  ])
  assert.deepEqual(
    [records.size, slots.size, alive.size, sandboxes.get('i1')],
    [0, 0, 0, undefined],
  )
})

test('a paused folder that a resume cannot remove is gone before the sandbox is paused again or killed', async () => {
  const damaged = new Set<string>()
  const { create, sandboxes, records } = simulateNode({
    overrides: {
      async retire(cellId) {
        if (damaged.has(cellId)) throw new Error('read-only')
        records.delete(cellId)
        return async () => {}
      },
    },
  })
  const { record } = await create()
  await sandboxes.pause('i1', { keepMemory: true })
  damaged.add(record.cellId)
  const request = { sandboxId: 'i1', accessToken: undefined, boot: false }
  const resumed = await sandboxes.resume(request)
  assert.deepEqual(
    [...records.values()].map(({ cellId, phase }) => [cellId, phase]),
    [
      [record.cellId, 'resuming'],
      [resumed.record.cellId, 'running'],
    ],
  )
  await assert.rejects(sandboxes.pause('i1', { keepMemory: true }), /read-only/)
  assert.equal(sandboxes.running().length, 1)
  await assert.rejects(sandboxes.kill('i1'), /read-only/)
  assert.deepEqual([...records.keys()], [record.cellId])
  damaged.clear()
  await sandboxes.kill('i1')
  assert.equal(records.size, 0)
})

test('a resume is answered before the files of the paused cell are removed, and a kill waits for them', async () => {
  const removal = Promise.withResolvers<void>()
  const { create, sandboxes, records } = simulateNode({
    overrides: {
      async retire(cellId) {
        records.delete(cellId)
        return () => removal.promise
      },
    },
  })
  const { record } = await create()
  await sandboxes.pause('i1', { keepMemory: true })
  const resumed = await sandboxes.resume({ sandboxId: 'i1', accessToken: undefined, boot: false })
  assert.deepEqual([...records.keys()], [resumed.record.cellId])
  assert.notEqual(resumed.record.cellId, record.cellId)
  let isGone = false
  const killed = sandboxes.kill('i1').then(() => (isGone = true))
  await new Promise(setImmediate)
  assert.deepEqual([isGone, sandboxes.get('i1')], [false, undefined])
  removal.resolve()
  await killed
})

test('files of a paused cell that cannot be removed are reported, and do not stop a later pause or kill', async () => {
  const { create, sandboxes, records, errors } = simulateNode({
    overrides: {
      async retire(cellId) {
        records.delete(cellId)
        return async () => {
          throw new Error('read-only')
        }
      },
    },
  })
  await create()
  await sandboxes.pause('i1', { keepMemory: true })
  await sandboxes.resume({ sandboxId: 'i1', accessToken: undefined, boot: false })
  await sandboxes.settle()
  assert.match(String(errors), /read-only/)
  await sandboxes.pause('i1', { keepMemory: true })
  await sandboxes.kill('i1')
  assert.equal(records.size, 0)
})

test('a resume restores while the disk of the paused cell is still being flushed, and ends after it', async () => {
  const released = Promise.withResolvers<void>()
  let flushes = 0
  const { create, sandboxes, records, slots } = simulateNode({
    // The first one belongs to the pause itself.
    overrides: {
      disks: { flush: async () => ((flushes += 1) > 1 ? released.promise : undefined) },
    },
  })
  const { record } = await create()
  await sandboxes.pause('i1', { keepMemory: true })
  const request = { sandboxId: 'i1', accessToken: undefined, boot: false }
  const resumed = sandboxes.resume(request)
  await waitFor('the sandbox to run in another cell', () =>
    [...records.values()].some(
      ({ cellId, phase }) => cellId !== record.cellId && phase === 'running',
    ),
  )
  assert.equal(records.get(record.cellId)?.phase, 'resuming')
  released.resolve()
  await resumed
  assert.equal(records.has(record.cellId), false)
  await sandboxes.kill('i1')
  assert.deepEqual([records.size, slots.size], [0, 0])
})

test('a kill of a paused sandbox waits for the release of its cell', async () => {
  const released = Promise.withResolvers<void>()
  let flushes = 0
  const { create, sandboxes, records } = simulateNode({
    overrides: {
      disks: { flush: async () => ((flushes += 1) > 1 ? released.promise : undefined) },
    },
  })
  await create()
  await sandboxes.pause('i1', { keepMemory: true })
  const killed = sandboxes.kill('i1')
  await waitFor('the kill to begin', () => sandboxes.get('i1') === undefined)
  assert.equal(records.size, 1)
  released.resolve()
  await killed
  assert.equal(records.size, 0)
})
