import type { PausedContent } from '../uploaded.ts'
import { isDurable, isSameContent, noteContent } from './sandbox-pause.ts'
import { end } from './sandbox.ts'
import type { Sandbox } from './sandbox.ts'
import type { LostSandbox } from './sandbox-store.ts'

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

/** Returns the content that the object store may have although the record does not say so. Undefined: none that has a name. */
export function maybeUploaded(sandbox: LostSandbox): PausedContent | undefined {
  const { id, state, keptGeneration, keptId } = sandbox
  const isKept = state === 'paused' || state === 'resuming'
  if (!isKept || isDurable(sandbox)) return undefined
  return keptGeneration === undefined || keptId === undefined
    ? undefined
    : { id, keptGeneration, keptId }
}

/** Notes that the object store has this content, unless the sandbox has another one by now. */
export function noteUploaded(sandbox: Sandbox, nodeId: string, content: PausedContent): Sandbox {
  const current = maybeUploaded(sandbox)
  const isSame = current !== undefined && isSameContent(current, content)
  if (!isSame || sandbox.nodeId !== nodeId) return sandbox
  return noteContent(sandbox, { ...content, isDurable: true })
}
