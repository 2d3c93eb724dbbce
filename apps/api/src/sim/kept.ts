import { SandboxState } from '@atoll/contracts/gen/atoll/node/v1/node_pb'
import type { NodeService } from '@atoll/contracts/gen/atoll/node/v1/node_pb'
import { Code, ConnectError } from '@connectrpc/connect'
import type { ServiceImpl } from '@connectrpc/connect'
import type { createEvents } from './events.ts'
import type { SimulatedSandbox } from './node.ts'
import type { Trouble } from './trouble.ts'

/** What a simulated node does with sandboxes that are put aside. */

export interface PausedSandbox extends SimulatedSandbox {
  readonly keepsMemory: boolean
}

interface World {
  readonly running: Map<string, SimulatedSandbox>
  readonly paused: Map<string, PausedSandbox>
  readonly events: ReturnType<typeof createEvents>
  readonly trouble: Trouble
}

export function keepSandboxes({ running, paused, events, trouble }: World) {
  let keepsMemory = true

  const service: Partial<ServiceImpl<typeof NodeService>> = {
    async pauseSandbox({ sandboxId, keepMemory }) {
      trouble.refuse()
      if (paused.has(sandboxId)) return {}
      if (!running.has(sandboxId)) throw absent()
      if (keepMemory && !keepsMemory) throw new ConnectError('runc', Code.FailedPrecondition)
      await trouble.meet('pause')
      const sandbox = running.get(sandboxId)
      if (!sandbox) throw absent()
      running.delete(sandboxId)
      paused.set(sandboxId, { ...sandbox, keepsMemory: keepMemory })
      events.publish({ case: 'paused', value: { sandboxId } })
      await trouble.meet('pause', 'after')
      return {}
    },
    async resumeSandbox({ sandboxId, boot, accessToken }) {
      trouble.refuse()
      if (running.has(sandboxId)) return { sandbox: runningAt(sandboxId) }
      if (!paused.has(sandboxId)) throw absent()
      await trouble.meet('resume')
      const found = paused.get(sandboxId)
      if (!found) throw absent()
      const { keepsMemory: isKept, ...sandbox } = found
      paused.delete(sandboxId)
      const boots = sandbox.boots + (boot || !isKept ? 1 : 0)
      running.set(sandboxId, { ...sandbox, accessToken, boots })
      events.publish({ case: 'started', value: runningAt(sandboxId) })
      await trouble.meet('resume', 'after')
      return { sandbox: runningAt(sandboxId) }
    },
  }

  return {
    service,
    get keepsMemory() {
      return keepsMemory
    },
    forgetMemory: () => void (keepsMemory = false),
    list: () =>
      [...paused].map(([sandboxId, sandbox]) => ({
        sandboxId,
        address: '',
        state: SandboxState.PAUSED,
        keepsMemory: sandbox.keepsMemory,
      })),
  }
}

function runningAt(sandboxId: string) {
  return { sandboxId, address: '127.0.0.1', state: SandboxState.RUNNING }
}

function absent(): ConnectError {
  return new ConnectError('absent', Code.NotFound)
}
