import type { NodeShape, NodeUsage } from '../../domain/node.ts'
import type { Candidate, Load } from '../../domain/nodes/placement.ts'

/**
 * Loads of nodes as this process knows them: the last measurement, plus what it has placed since. Other processes place
 * sandboxes too, which the next measurement shows.
 */
export interface Loads {
  describe(nodeId: string, shape: NodeShape): Candidate
  /** Whether the node has this much memory and disk space free. True if it was not measured yet. */
  hasRoom(nodeId: string, needed: Omit<Load, 'cpuCount'>): boolean
  /** Counts a sandbox that is being created. Call `settle` once it exists, or `cancel` if it does not. */
  reserve(nodeId: string, shape: NodeShape): Reservation
  /** Call before asking the node. Pass the answer to the returned function. */
  beginMeasuring(nodeId: string): (usage: NodeUsage) => void
  forget(nodeId: string): void
}

export interface Reservation {
  settle(): void
  cancel(): void
}

interface KnownLoad {
  usage: NodeUsage | undefined
  readonly reserved: Set<Reserved>
}

interface Reserved {
  readonly load: Load
  /** Exists on the node: the next measurement that begins includes it. */
  isSettled: boolean
}

const megabyte = 1024 * 1024
const none: Load = { cpuCount: 0, memoryBytes: 0, diskBytes: 0 }

export function createLoads(): Loads {
  const nodes = new Map<string, KnownLoad>()
  const find = (nodeId: string): KnownLoad => {
    const known = nodes.get(nodeId) ?? { usage: undefined, reserved: new Set<Reserved>() }
    nodes.set(nodeId, known)
    return known
  }
  return {
    describe(nodeId, shape) {
      const { usage, reserved } = find(nodeId)
      const { nodeTemplateId } = shape
      return {
        id: nodeId,
        capacity: usage ? capacityOf(usage) : none,
        used: usage ? usedOf(usage) : none,
        promised: [...reserved].reduce(
          (sum, { load }) => add(sum, load),
          usage ? allocatedOf(usage) : none,
        ),
        hasReadyCell:
          usage?.pools.some(
            ({ templateId, ready }) => templateId === nodeTemplateId && ready > 0,
          ) ?? false,
        hasLayers: true,
      }
    },
    hasRoom(nodeId, { memoryBytes, diskBytes }) {
      const { usage } = find(nodeId)
      if (!usage) return true
      const [capacity, used] = [capacityOf(usage), usedOf(usage)]
      return (
        hasFree(capacity.memoryBytes, used.memoryBytes, memoryBytes) &&
        hasFree(capacity.diskBytes, used.diskBytes, diskBytes)
      )
    },
    reserve(nodeId, shape) {
      const { reserved } = find(nodeId)
      const reservation: Reserved = { load: loadOf(shape), isSettled: false }
      reserved.add(reservation)
      return {
        settle: () => void (reservation.isSettled = true),
        cancel: () => void reserved.delete(reservation),
      }
    },
    beginMeasuring(nodeId) {
      const known = find(nodeId)
      const included = [...known.reserved].filter(({ isSettled }) => isSettled)
      return (usage) => {
        known.usage = usage
        for (const reservation of included) known.reserved.delete(reservation)
      }
    },
    forget: (nodeId) => void nodes.delete(nodeId),
  }
}

/** A capacity of 0 is unknown. */
function hasFree(capacity: number, used: number, needed: number): boolean {
  return capacity === 0 || capacity - used >= needed
}

/** Returns what a sandbox of this shape asks of a node. */
export function loadOf({ cpuCount, memoryMb, diskSizeMb }: NodeShape): Load {
  return { cpuCount, memoryBytes: memoryMb * megabyte, diskBytes: diskSizeMb * megabyte }
}

function capacityOf({ cpuCount, memoryTotalBytes, disks }: NodeUsage): Load {
  return {
    cpuCount,
    memoryBytes: memoryTotalBytes,
    diskBytes: disks.reduce((sum, { totalBytes }) => sum + totalBytes, 0),
  }
}

function usedOf({ cpuCount, cpuPercent, memoryUsedBytes, disks }: NodeUsage): Load {
  return {
    cpuCount: (cpuCount * cpuPercent) / 100,
    memoryBytes: memoryUsedBytes,
    diskBytes: disks.reduce((sum, { usedBytes }) => sum + usedBytes, 0),
  }
}

/** Disks of sandboxes grow as they are used, so the measured use says more than their sizes. */
function allocatedOf({ allocatedCpuCount, allocatedMemoryBytes }: NodeUsage): Load {
  return { cpuCount: allocatedCpuCount, memoryBytes: allocatedMemoryBytes, diskBytes: 0 }
}

function add(a: Load, b: Load): Load {
  return {
    cpuCount: a.cpuCount + b.cpuCount,
    memoryBytes: a.memoryBytes + b.memoryBytes,
    diskBytes: a.diskBytes + b.diskBytes,
  }
}
