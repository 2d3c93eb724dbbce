import type { SandboxNode } from '../../domain/node.ts'

/**
 * Estimates the disk space that a running sandbox would take if kept now. Returns zeros when the node does not answer.
 */
export type EstimateSize = (id: string) => Promise<SizeEstimate>

export interface SizeEstimate {
  readonly diskBytes: number
  readonly memoryBytes: number
}

const sampleTimeoutMs = 5_000

export function createEstimateSize(node: Pick<SandboxNode, 'sample'>): EstimateSize {
  return async (id) => {
    // An unreachable node will not keep anything either.
    const [reading] = await node.sample(AbortSignal.timeout(sampleTimeoutMs), id).catch(() => [])
    return {
      diskBytes: reading?.diskUsedBytes ?? 0,
      memoryBytes: (reading?.memoryUsedBytes ?? 0) + (reading?.memoryCacheBytes ?? 0),
    }
  }
}

export function bytesOf({ diskBytes, memoryBytes }: SizeEstimate, withMemory: boolean): number {
  return diskBytes + (withMemory ? memoryBytes : 0)
}
