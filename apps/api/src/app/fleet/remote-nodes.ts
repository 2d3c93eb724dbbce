import type { Logger } from '@atoll/kit/log'
import type { FleetStore, NodeAddress } from '../../domain/fleet-member.ts'
import type { NodeLink } from '../../domain/node.ts'
import type { Fleet } from '../nodes/fleet.ts'
import { startLoop } from '../loop.ts'
import type { Loop } from '../loop.ts'

const intervalMs = 2_000

export interface RemoteLink {
  readonly link: NodeLink
  close(): void
}

/** Connects this api to all nodes that the store lists, and disconnects it from nodes that were removed or have moved. */
export function startRemoteNodes(ports: {
  readonly store: Pick<FleetStore, 'listNodes'>
  readonly fleet: Pick<Fleet, 'add'>
  readonly connect: (node: NodeAddress) => RemoteLink
  readonly log: Logger
}): Loop {
  const { store, fleet, connect, log } = ports
  const connected = new Map<string, { readonly address: string; remove(): Promise<void> }>()

  /** An address that cannot be used must not keep this api from other nodes. It is tried again when it changes. */
  const tryConnect = (node: NodeAddress): RemoteLink | undefined => {
    try {
      return connect(node)
    } catch (err) {
      connected.set(node.id, { address: node.address, async remove() {} })
      log.error({ err, event: 'node.address', nodeId: node.id }, 'The address cannot be used')
      return undefined
    }
  }
  const add = (node: NodeAddress): void => {
    const remote = tryConnect(node)
    if (!remote) return
    const { link, close } = remote
    const remove = fleet.add(link)
    connected.set(node.id, {
      address: node.address,
      async remove() {
        close()
        await remove()
      },
    })
    log.info({ event: 'node.add', nodeId: node.id, address: node.address })
  }
  const drop = async (id: string): Promise<void> => {
    const known = connected.get(id)
    connected.delete(id)
    await known?.remove()
    log.info({ event: 'node.drop', nodeId: id })
  }
  const pass = async (): Promise<number> => {
    const listed = new Map((await store.listNodes()).map((node) => [node.id, node]))
    for (const [id, { address }] of connected) {
      if (listed.get(id)?.address !== address) await drop(id)
    }
    for (const node of listed.values()) if (!connected.has(node.id)) add(node)
    return intervalMs
  }
  const loop = startLoop('list nodes', pass, log)
  return {
    ...loop,
    async close() {
      await loop.close()
      await Promise.all([...connected.keys()].map(drop))
    },
  }
}
