import assert from 'node:assert/strict'
import { test } from 'node:test'
import { systemClock } from '@atoll/kit/clock'
import { Fault } from '@atoll/kit/fault'
import type { NodeFetch } from '../../domain/node.ts'
import type { Sandbox } from '../../domain/sandboxes/sandbox.ts'
import type { OnNode } from '../../domain/sandboxes/sandbox-pause.ts'
import { resumeOrFetch } from './move-sandbox.ts'

const claimed: Sandbox = {
  ...{ id: 'i1', nodeId: 'n1', state: 'resuming', generation: 4 },
  ...{ keptGeneration: 3, keptId: undefined, durableGeneration: undefined },
  ...{ teamId: 't', templateId: 't', buildId: 'b', alias: undefined, parent: undefined },
  resources: { cpuCount: 1, memoryMb: 128, diskSizeMb: 16 },
  ...{ metadata: {}, secure: false, allowInternetAccess: true, network: undefined },
  lifecycle: { autoPause: false, autoPauseMemory: true, autoResume: false },
  ...{ timeoutSeconds: 1, createdAt: new Date(0), holder: 'p', networkHolder: undefined },
  ...{ envdVersion: undefined, startedAt: undefined, endAt: undefined, kept: 'memory' },
  ...{ keptBytes: undefined, storedGeneration: 3, endReason: undefined, endedAt: undefined },
}

/** Resumes on a node that has no files before a fetch. Returns the fetches. */
async function resumeOn(onNode: OnNode, reason: string, sandbox: Sandbox = claimed) {
  const fetched: NodeFetch[] = []
  const node = {
    find: async () => onNode,
    async fetch(content: NodeFetch) {
      fetched.push(content)
      return { isUnderway: false, receivedBytes: 1 }
    },
  }
  await resumeOrFetch(node, { claimed: sandbox, boot: false, clock: systemClock }, async () => {
    if (fetched.length === 0) throw new Fault('conflict', reason, 'no files here')
  })
  return fetched
}

const paused = { state: 'paused', kept: 'memory', generation: 3 } as const
const content = { keptGeneration: 3, keptId: 'k', isDurable: true }

test('what a node has evicted is fetched under the name that the node knows', async () => {
  const found = { ...paused, ...content }
  assert.deepEqual(await resumeOn(found, 'sandbox_evicted'), [
    { id: 'i1', generation: 4, keptGeneration: 3, keptId: 'k', boot: false },
  ])
  const durable = { ...claimed, keptId: 'known', durableGeneration: 3 }
  const [byRecord] = await resumeOn(undefined, 'sandbox_not_found', durable)
  assert.equal(byRecord?.keptId, 'known')
})

test('older content, and content that the store does not have, is not fetched', async () => {
  const refused = { reason: 'sandbox_evicted' }
  const older = { ...paused, ...content, keptGeneration: 2 }
  const notStored = { ...paused, ...content, isDurable: false }
  for (const onNode of [older, notStored, paused, undefined]) {
    await assert.rejects(resumeOn(onNode, 'sandbox_evicted'), refused)
  }
  const found = { ...paused, ...content }
  await assert.rejects(resumeOn(found, 'sandbox_not_found'), { reason: 'sandbox_not_found' })
  await assert.rejects(resumeOn(found, 'node_busy'), { reason: 'node_busy' })
})
