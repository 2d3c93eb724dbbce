import type { Transport } from '@connectrpc/connect'
import type { ResealRecords } from '@atoll/api'
import type { KeyRing } from '@atoll/kit/encryption/key-ring'
import type { MeasureStep } from '@atoll/kit/instrument'
import type { Logger } from '@atoll/kit/log'
import type { OpenCapture } from '@atoll/node'
import type { NodeConfig } from '@atoll/node/config'
import type { Shape } from '@atoll/node/domain/sandboxes/cell'
import type { ServerConfig } from './config.ts'

export type StartNode = (
  config: NodeConfig,
  parts: {
    readonly log: Logger
    readonly progress: (label: string, fraction: number) => void
    readonly wanted: readonly Shape[]
    readonly measure: MeasureStep | undefined
    readonly keyRing: KeyRing
  },
) => Promise<{
  readonly transport: Transport
  /** Seals the private values of all records of the node with the current key. Absent: the node has none. */
  readonly resealRecords?: ResealRecords
  /** Absent: this node cannot be backed up. */
  readonly openCapture?: OpenCapture
  close(): Promise<void>
}>

/** Loads the node on demand: it has native parts that only a real node needs. */
export const startLocalNode: StartNode = async (config, parts) => {
  const { startNode } = await import('@atoll/node')
  return startNode(config, parts)
}

/** Returns the shape of most sandboxes, pre-warmed before the first create. */
export function baseShape({ api }: ServerConfig): Shape {
  return {
    templateId: 'base',
    cpuCount: api.ATOLL_BASE_CPU_COUNT,
    memoryMb: api.ATOLL_BASE_MEMORY_MB,
    diskSizeMb: api.ATOLL_BASE_DISK_SIZE_MB,
  }
}
