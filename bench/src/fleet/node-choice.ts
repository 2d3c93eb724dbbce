import { systemClock } from '@atoll/kit/clock'
import { silentLogger } from '@atoll/kit/log'
import { simulateNode } from '@atoll/simulated-node/node'
import { createFleet } from '../../../apps/api/src/app/nodes/fleet.ts'
import { createLoads } from '../../../apps/api/src/app/nodes/loads.ts'
import { createPlacing } from '../../../apps/api/src/app/nodes/placing.ts'
import type { NodeUsage } from '../../../apps/api/src/domain/node.ts'
import { connectLink } from '../../../apps/api/src/nodes/connect-link.ts'

const registerLimitMs = 60_000

/** Returns work that chooses one of `nodeCount` nodes `choices` times, and creates nothing. */
export async function createChoice(
  nodeCount: number,
  choices: number,
): Promise<() => Promise<void>> {
  const store = {
    register: async () => 'registered' as const,
    claimRecords: async () => 0,
    find: async () => undefined,
  }
  const loads = createLoads()
  const fleet = createFleet({ store, clock: systemClock, log: silentLogger })
  for (let number = 0; number < nodeCount; number += 1)
    fleet.add(connectLink(simulateNode(undefined, `node-${number}`).transport))
  const signal = AbortSignal.timeout(registerLimitMs)
  const usages = new Map<string, NodeUsage>()
  for (const member of fleet.members()) {
    const { id } = await member.register(signal)
    const usage = await member.sandboxes.measure(signal)
    usages.set(id, usage)
    loads.beginMeasuring(id)(usage)
  }
  const placing = createPlacing({ fleet, loads, store, clock: systemClock })
  const shape = { nodeTemplateId: 'base', cpuCount: 2, memoryMb: 512, diskSizeMb: 1024 }
  return async () => {
    for (let made = 0; made < choices; made += 1) {
      const nodeId = await placing.place({ shape }, async (id) => id)
      // Ends the reservation, which would slow down later choices.
      const usage = usages.get(nodeId)
      if (usage) loads.beginMeasuring(nodeId)(usage)
    }
  }
}
