import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Snapshot } from '../../domain/snapshot.ts'
import { sweepSnapshots } from './sweep-snapshots.ts'

const held: Snapshot = {
  id: 's1',
  nodeId: 'n1',
  teamId: 't1',
  sandboxId: 'i1',
  holder: 'p1',
  buildId: undefined,
  sizeBytes: undefined,
  createdAt: new Date(0),
}

/** Runs a pass in which the owner of `held` finishes after the records were read. */
async function sweepWhile(finish: (unpublished: Snapshot[]) => void) {
  const unpublished = [held]
  const inUse = new Set([held.id])
  const discarded: string[] = []
  const unused = () => Promise.reject(new Error('not needed here'))
  await sweepSnapshots(
    {
      node: {
        id: 'n1',
        sandboxes: { listSnapshots: async () => ({ ids: [held.id], durableIds: [] }) },
      },
      snapshots: {
        insert: unused,
        resize: unused,
        checkName: unused,
        publish: unused,
        list: unused,
        delete: unused,
        known: async () => new Set([held.id]),
        listUnpublished: async () => [...unpublished],
        markDurable: async () => {},
      },
      copying: {
        copy: unused,
        isInUse: (id) => inUse.has(id),
        discard: async ({ id }) => void discarded.push(id),
      },
      leases: {
        renew: unused,
        end: unused,
        deleteExpiredBefore: unused,
        async listLive() {
          finish(unpublished)
          inUse.clear()
          return [{ processId: 'p1', node: 'n1' }]
        },
      },
      clock: { now: () => new Date(0) },
      processId: 'p1',
    },
    new AbortController().signal,
  )
  return discarded
}

test('a copy that is published during a pass is kept', async () => {
  assert.deepEqual(await sweepWhile((unpublished) => void unpublished.pop()), [])
})

test('a copy that its process released without publishing is deleted', async () => {
  assert.deepEqual(await sweepWhile(() => {}), ['s1'])
})
