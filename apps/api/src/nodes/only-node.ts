import { Fault } from '@atoll/kit/fault'
import type { NodeLink } from '../domain/node.ts'

/** Refuses an agent that claims another ID than its certificate has: it would get the sandboxes of that node. */
export function onlyNode(id: string, link: NodeLink): NodeLink {
  return {
    ...link,
    id,
    async describe(signal) {
      const facts = await link.describe(signal)
      if (facts.id === id) return facts
      throw new Fault(
        'conflict',
        'node_superseded',
        `Node ${id} says that it is node ${facts.id}, and is not used: its data directory was copied or replaced`,
      )
    },
  }
}
