import type { Fleet } from '../nodes/fleet.ts'

/**
 * Estimates the disk space that a running sandbox would take if kept now. Returns zeros when the node does not answer.
 */
export type EstimateSize = (sandbox: {
  readonly id: string
  readonly nodeId: string
}) => Promise<SizeEstimate>

export interface SizeEstimate {
  readonly diskBytes: number
  readonly memoryBytes: number
}

const sampleTimeoutMs = 5_000

export function createEstimateSize(fleet: Pick<Fleet, 'of' | 'reaches'>): EstimateSize {
  return async ({ id, nodeId }) => {
    // An unreachable node will not keep anything either.
    const limit = AbortSignal.timeout(sampleTimeoutMs)
    const sample = fleet.reaches(nodeId) ? fleet.of(nodeId).sample(limit, id) : undefined
    const [reading] = (await sample?.catch(() => [])) ?? []
    return {
      diskBytes: reading?.diskUsedBytes ?? 0,
      memoryBytes: (reading?.memoryUsedBytes ?? 0) + (reading?.memoryCacheBytes ?? 0),
    }
  }
}

export function bytesOf({ diskBytes, memoryBytes }: SizeEstimate, withMemory: boolean): number {
  return diskBytes + (withMemory ? memoryBytes : 0)
}
