import { NodeService } from '@atoll/contracts/gen/atoll/node/v1/node_pb'
import { Fault } from '@atoll/kit/fault'
import { createClient } from '@connectrpc/connect'
import type { Transport } from '@connectrpc/connect'
import type { NodeLink } from '../domain/node.ts'
import { addressTo } from './addressed-transport.ts'
import type { Addressee } from './addressed-transport.ts'
import { connectBuilds } from './connect-builds.ts'
import { connectCatalogue } from './connect-catalogue.ts'
import { connectConnections } from './connect-connections.ts'
import { connectChanges } from './connect-changes.ts'
import { connectLogs } from './connect-logs.ts'
import { connectNode } from './connect-node.ts'
import { toFacts } from './node-message.ts'

/** Connects to the node at the other end of a transport, whichever it is. */
export function connectLink(transport: Transport): NodeLink {
  const client = createClient(NodeService, transport)
  let agent: Addressee | undefined
  const addressed = addressTo(transport, () => {
    if (agent) return agent
    throw new Fault('unavailable', 'node_unavailable', 'The node does not answer; try again later')
  })
  return {
    describe: async (signal) => toFacts(await client.getNode({}, { signal })),
    address: ({ id, epoch }) => void (agent = { id, epoch }),
    sandboxes: connectNode(addressed),
    builds: connectBuilds(addressed),
    catalogue: connectCatalogue(addressed),
    logs: connectLogs(addressed),
    changes: connectChanges(addressed),
    connections: connectConnections(addressed),
  }
}
