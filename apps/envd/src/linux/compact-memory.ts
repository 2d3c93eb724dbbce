/**
 * Collects all garbage of this process and returns free memory to the kernel. Takes 50 ms or more, and blocks.
 *
 * V8 keeps the space of its garbage for later, and the C library keeps freed blocks. Without this, a third of envd's
 * memory is garbage of the warm-up, which would be in every checkpoint and every sandbox. After a burst of requests,
 * most of it is garbage.
 */
import { getHeapStatistics, setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import type { Libc } from './libc.ts'

export function compactMemory(libc: Pick<Libc, 'trimMemory'>): void {
  collectGarbage()
  libc.trimMemory(0)
}

/** Size of the heap with what belongs to it, garbage included. */
export function heapBytes(): number {
  const { total_physical_size: heap, external_memory: external } = getHeapStatistics()
  return heap + external
}

/** Node.js offers the collection only by a flag, which new contexts see from then on. */
function collectGarbage(): void {
  setFlagsFromString('--expose-gc')
  try {
    const collect: NodeJS.GCFunction | undefined = runInNewContext('globalThis.gc')
    // Other flavors keep the memory for later allocations.
    collect?.({ type: 'major', execution: 'sync', flavor: 'last-resort' })
  } finally {
    setFlagsFromString('--no-expose-gc')
  }
}
