import { isDurable } from './sandbox-pause.ts'
import { end } from './sandbox.ts'
import type { Sandbox } from './sandbox.ts'

const lost = 'was lost with its node, which is gone for good'

/**
 * Ends a sandbox whose node is gone for good. A sandbox whose whole content is in the object store stays as it is: it is paused,
 * or is being resumed elsewhere. No client asked for the end, so a node that comes back after all deletes nothing.
 */
export function endWithNode(sandbox: Sandbox, nodeId: string, now: Date): Sandbox {
  if (sandbox.state === 'ended' || sandbox.nodeId !== nodeId || isDurable(sandbox)) return sandbox
  const isKept = sandbox.state === 'paused'
  return end(sandbox, now, isKept ? `${lost}, before its content was uploaded` : lost)
}
