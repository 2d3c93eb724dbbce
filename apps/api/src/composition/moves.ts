import { startLoop } from '../app/loop.ts'
import { createMoves } from '../app/moves/move-off-nodes.ts'
import { createWaitForUpload } from '../app/moves/wait-for-upload.ts'
import { createEstimateSize } from '../app/snapshots/estimate-size.ts'
import { atMost } from './at-most.ts'
import type { Core } from './core.ts'
import type { SandboxParts } from './sandboxes.ts'

const settleLimitMs = 5_000

/** Starts to move sandboxes off drained nodes. */
export function startMoves(
  { stores, fleet, placing, clock, log }: Core,
  { pausing, start }: Pick<SandboxParts, 'pausing' | 'start'>,
): { close(): Promise<void> } {
  // The looks of every few seconds, and the polls of a move, must not hold up requests.
  const { sandboxes: store, nodes } = stores.background
  const waitForUpload = createWaitForUpload({ store, fleet })
  const ports = { store, nodes, fleet, placing, pausing, start, waitForUpload }
  const moves = createMoves({ ...ports, estimateSize: createEstimateSize(fleet), clock, log })
  const loop = startLoop('move sandboxes', moves.pass, log)
  return {
    async close() {
      await loop.close()
      await atMost(settleLimitMs, moves.settle())
    },
  }
}
