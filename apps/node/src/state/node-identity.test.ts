import assert from 'node:assert/strict'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { startEpoch } from './node-identity.ts'

test('a node keeps its ID, and each start has the next epoch', async (t) => {
  const dataDir = await mkdtemp(join(tmpdir(), 'atoll-node-'))
  t.after(() => rm(dataDir, { recursive: true }))
  const first = await startEpoch(dataDir)
  const second = await startEpoch(dataDir)
  assert.match(first.nodeId, /^[0-9a-f]{8}-[0-9a-f-]{27}$/)
  assert.deepEqual([first.epoch, second], [1, { nodeId: first.nodeId, epoch: 2 }])
})

test('a damaged identity stops the node instead of giving it a new ID', async (t) => {
  const dataDir = await mkdtemp(join(tmpdir(), 'atoll-node-'))
  t.after(() => rm(dataDir, { recursive: true }))
  for (const text of ['', '{"nodeId":"x","epoch":1}', '{"nodeId":7}']) {
    await writeFile(join(dataDir, 'node.json'), text)
    await assert.rejects(startEpoch(dataDir), /node\.json cannot be read/)
  }
})
