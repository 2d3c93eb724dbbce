import { Fault } from '@atoll/kit/fault'
import type { CellRecord } from '../../domain/sandboxes/cell.ts'
import type { Runtime } from '../../domain/sandboxes/runtime.ts'

/**
 * Throws a fault when this node cannot use the stored state. Runtimes store different uids on the disk, and a release
 * cannot read the memory that another one wrote.
 */
export async function checkReadable(
  present: Runtime,
  kept: Pick<CellRecord, 'runtime' | 'memory'>,
  /** Advice for memory that cannot be read. */
  hint = '',
): Promise<void> {
  if (kept.runtime !== present.name) {
    throw new Fault(
      'invalid',
      'other_runtime',
      `It was created with the runtime ${kept.runtime}, but this node runs ${present.name}: start the node with ATOLL_RUNTIME=${kept.runtime}`,
    )
  }
  const format = await present.memoryFormat()
  if (kept.memory === undefined || kept.memory === format) return
  throw new Fault(
    'invalid',
    'memory_unreadable',
    `Its memory was written by ${kept.memory}, and this node has ${format ?? present.name}, which cannot read it${hint}`,
  )
}
