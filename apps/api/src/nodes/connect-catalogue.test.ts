import assert from 'node:assert/strict'
import { test } from 'node:test'
import { NodeService } from '@atoll/contracts/gen/atoll/node/v1/node_pb'
import { reasonHeader } from '@atoll/contracts/node-faults'
import { Code, ConnectError, createRouterTransport } from '@connectrpc/connect'
import { connectCatalogue } from './connect-catalogue.ts'

/** Installs a template on a node that fails with this reason. */
async function install(reason: string, message: string): Promise<void> {
  const transport = createRouterTransport(({ rpc }) => {
    rpc(NodeService.method.installTemplate, async function* () {
      yield { label: 'files', fraction: 0.5 }
      throw new ConnectError(message, Code.ResourceExhausted, { [reasonHeader]: reason })
    })
  })
  const resources = { cpuCount: 1, memoryMb: 128, diskSizeMb: 16 }
  const order = { nodeTemplateId: 't1', resources }
  const steps = connectCatalogue(transport).install(order, new AbortController().signal)
  for await (const _ of steps) continue
}

test('a full disk during an install keeps the message of the node', async () => {
  await assert.rejects(install('disk_full', 'Not enough disk space on the node'), {
    kind: 'unavailable',
    reason: 'disk_full',
    message: 'Not enough disk space on the node',
  })
})

test('another limit of the node is not reported as a full disk, and its message is hidden', async () => {
  await assert.rejects(install('no_address', 'All addresses of 10.213.0.0/16 are in use'), {
    reason: 'install_failed',
    message: /^The template could not be installed/,
  })
})
