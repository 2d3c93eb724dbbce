import { createForgetting } from '../app/fleet/forget-node.ts'
import type { Forgetting } from '../app/fleet/forget-node.ts'
import { createHeartbeats } from '../app/fleet/heartbeats.ts'
import type { NoteHeartbeat } from '../app/fleet/heartbeats.ts'
import { startLossDetection } from '../app/fleet/loss.ts'
import { createMembership } from '../app/fleet/membership.ts'
import type { Membership } from '../app/fleet/membership.ts'
import { startRemoteNodes } from '../app/fleet/remote-nodes.ts'
import type { RecoverResumes } from '../app/sandboxes/recover-resumes.ts'
import type { NodeAddress } from '../domain/fleet-member.ts'
import type { NodeLink } from '../domain/node.ts'
import { createSilence } from '../domain/nodes/silence.ts'
import { statesShownAs } from '../domain/sandboxes/sandbox.ts'
import { connectLink } from '../nodes/connect-link.ts'
import { onlyNode } from '../nodes/only-node.ts'
import type { Core } from './core.ts'
import type { FleetParts } from './fleet-parts.ts'

/** Calls that edges and nodes make, after their certificates were checked. */
export interface FleetCalls extends Membership {
  readonly noteHeartbeat: NoteHeartbeat
  listNodes(): Promise<readonly { readonly id: string; readonly address: string }[]>
  /** Returns the ID of the node on which the sandbox runs. */
  locate(sandboxId: string): Promise<string | undefined>
}

export interface StartedFleet {
  readonly calls: FleetCalls
  readonly forget: Forgetting['forget']
  /** Sets what recovers resumes on lost nodes. */
  useRecovery(recoverResumes: RecoverResumes): void
  close(): Promise<void>
}

export async function startFleet(core: Core, parts: FleetParts): Promise<StartedFleet> {
  const { stores, clock, log, fleet, placing } = core
  const membership = createMembership({ store: stores.fleet, clock })
  const silence = createSilence({ lostMs: parts.lostSeconds * 1000 })
  const connect = (node: Omit<NodeAddress, 'seenAt'>): { link: NodeLink; close(): void } => {
    const { transport, close } = parts.connect(node)
    return { link: onlyNode(node.id, connectLink(transport)), close }
  }
  const remote = startRemoteNodes({ store: stores.fleet, fleet, connect, log })
  await remote.first
  let recoverResumes: RecoverResumes = async () => {}
  const loss = startLossDetection({
    ...{ fleet: stores.fleet, sandboxes: stores.sandboxes, silence, clock, log },
    recoverResumes: (nodeId) => recoverResumes(nodeId),
    nowMs: () => performance.now(),
  })
  const forgetting = createForgetting({
    ...{ members: stores.fleet, sandboxes: stores.sandboxes, files: stores.nodeFiles },
    ...{ snapshots: stores.snapshots, builds: stores.builds },
    ...{ fleet, connect, clock, log, lostMs: parts.lostSeconds * 1000 },
    recoverResumes: (nodeId) => recoverResumes(nodeId),
  })
  const forgettingLoop = forgetting.start()
  placing.useSuspicion(silence.isSuspect)
  const running = new Set(statesShownAs('running'))
  return {
    calls: {
      ...membership,
      noteHeartbeat: createHeartbeats({ store: stores.fleet, clock }),
      listNodes: () => stores.fleet.listNodes(),
      async locate(sandboxId) {
        const sandbox = await stores.sandboxes.find(sandboxId)
        return sandbox && running.has(sandbox.state) ? sandbox.nodeId : undefined
      },
    },
    forget: forgetting.forget,
    useRecovery: (given) => void (recoverResumes = given),
    async close() {
      await Promise.all([loss.close(), forgettingLoop.close()])
      await remote.close()
    },
  }
}
