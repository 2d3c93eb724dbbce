import type { Clock } from '@atoll/kit/clock'
import type { Logger } from '@atoll/kit/log'
import type { FleetStore } from '../../domain/fleet-member.ts'
import type { Silence } from '../../domain/nodes/silence.ts'
import { end } from '../../domain/sandboxes/sandbox.ts'
import type { SandboxStore } from '../../domain/sandboxes/sandbox-store.ts'
import { startLoop } from '../loop.ts'
import type { Loop } from '../loop.ts'
import type { RecoverResumes } from '../sandboxes/recover-resumes.ts'

const intervalMs = 2_000
const nodeLost = 'node lost'

interface LossPorts {
  readonly fleet: Pick<FleetStore, 'listNodes'>
  readonly sandboxes: Pick<SandboxStore, 'listOfNode' | 'update'>
  readonly silence: Silence
  readonly clock: Clock
  readonly log: Logger
  readonly recoverResumes: RecoverResumes
  /** Milliseconds of a clock that never jumps. */
  readonly nowMs: () => number
}

/**
 * Watches the heartbeats of all nodes. When a node is lost, ends the records of its running sandboxes; the node kills those
 * sandboxes when it comes back. Paused sandboxes keep their records: their files are on the node or in the object store.
 */
export function startLossDetection(ports: LossPorts): Loop {
  const { fleet, silence, log, nowMs } = ports
  const reported = new Set<string>()
  const report = (key: string, isTrue: boolean, write: () => void) => {
    if (isTrue && !reported.has(key)) write()
    if (isTrue) reported.add(key)
    else reported.delete(key)
  }
  const pass = async (): Promise<number> => {
    const nodes = await fleet.listNodes()
    silence.note(nodes, nowMs())
    report('most', silence.isWidespread(), () =>
      log.error(
        { event: 'fleet.silent' },
        'Most nodes are silent. No node is given up: check the network between nodes and apis.',
      ),
    )
    const lost = new Set(silence.lost())
    for (const { id: nodeId } of nodes) {
      report(nodeId, lost.has(nodeId), () =>
        log.error({ event: 'node.lost', nodeId }, 'The node is lost: its running sandboxes end'),
      )
      if (!lost.has(nodeId)) continue
      await endRunning(ports, nodeId)
      await ports.recoverResumes(nodeId)
    }
    return intervalMs
  }
  return startLoop('watch heartbeats', pass, log)
}

async function endRunning({ sandboxes, clock }: LossPorts, nodeId: string): Promise<void> {
  for (const { id } of await sandboxes.listOfNode(nodeId, ['running'])) {
    await sandboxes.update(id, (current) =>
      current.state === 'running' && current.nodeId === nodeId
        ? end(current, clock.now(), nodeLost)
        : current,
    )
  }
}
