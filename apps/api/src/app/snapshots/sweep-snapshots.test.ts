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

/** Runs a pass in which the owner of `held` finishes after the records were read. `strays` have no record. */
async function sweepWhile(
  finish: (unpublished: Snapshot[]) => void,
  {
    strays = [],
    issued = [],
    ...own
  }: {
    readonly strays?: string[]
    readonly issued?: string[]
    readonly isMine?: boolean
    readonly processId?: string
  } = {},
) {
  const unpublished = [held]
  const inUse = new Set([held.id])
  const discarded: string[] = []
  const unknown: string[] = []
  const unused = () => Promise.reject(new Error('not needed here'))
  await sweepSnapshots(
    {
      node: {
        id: 'n1',
        hasObjects: false,
        sandboxes: { listSnapshots: async () => ({ ids: [held.id, ...strays], durableIds: [] }) },
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
        clearDurable: unused,
      },
      issuedFiles: { among: async (ids) => new Set(ids).intersection(new Set(issued)) },
      onUnknown: (id) => void unknown.push(id),
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
      ...{ isMine: true, processId: 'p1', ...own },
    },
    new AbortController().signal,
  )
  return { discarded, unknown }
}

test('a copy that is published during a pass is kept', async () => {
  const { discarded } = await sweepWhile((unpublished) => void unpublished.pop())
  assert.deepEqual(discarded, [])
})

test('a copy that its process released without publishing is deleted', async () => {
  assert.deepEqual((await sweepWhile(() => {})).discarded, ['s1'])
})

test('a copy without a record is deleted only if the store had one', async () => {
  const { discarded, unknown } = await sweepWhile((unpublished) => void unpublished.pop(), {
    strays: ['deleted', 'newer'],
    issued: ['deleted'],
  })
  assert.deepEqual([discarded, unknown], [['deleted'], ['newer']])
})

test('a process that does not sweep the node deletes only copies that it has made and released', async () => {
  const strays = { strays: ['deleted'], issued: ['deleted'], isMine: false }
  assert.deepEqual((await sweepWhile(() => {}, strays)).discarded, ['s1'])
  assert.deepEqual((await sweepWhile(() => {}, { ...strays, processId: 'p2' })).discarded, [])
})
