import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { OwnedSandbox } from '../../domain/sandboxes/sandbox-store.ts'
import { createMovesOfNode } from './moves-of-node.ts'

function sandbox(index: number): OwnedSandbox {
  const content = { keptGeneration: undefined, keptId: undefined, durableGeneration: undefined }
  const move = { kind: 'failed', generation: 1, problem: 'full' } as const
  const place = { id: `i${index}`, nodeId: 'first', state: 'running', generation: 1 } as const
  return { ...place, ...content, isKillRequested: false, isMoving: false, move }
}

test('the number of sandboxes that stay is complete, and the list of their problems is limited', async () => {
  const all = Array.from({ length: 1_001 }, (_, index) => sandbox(index))
  const movesOf = createMovesOfNode({
    store: { listOfNode: async () => all },
    nodes: { get: async () => ({ movesSandboxes: true }) },
  })
  const { running, staying, problems } = await movesOf('first')
  assert.deepEqual([running, staying, problems.length], [1_001, 1_001, 1_000])
})
