/**
 * Measures how long nodes have sent no heartbeat to any api. Only the time of this process counts: the store's last heartbeat
 * must stay the same through an unbroken series of readings. After a pause in the readings, such as an outage of the
 * store, counting begins anew. So neither clocks that differ nor an outage can make nodes look lost. A node that has only been
 * starting for long counts as silent too: its agent hangs, or fails at each start.
 */
export interface Silence {
  note(nodes: readonly NodeHeartbeat[], nowMs: number): void
  silentMs(nodeId: string): number
  /**
   * Lists nodes that are lost. Empty if most nodes are silent: then the network of the apis is at fault. Counting begins anew
   * when that ends, since nodes come back one after the other.
   */
  lost(): readonly string[]
  /** Whether the node must get no new sandboxes: it is silent, or its agent is starting. */
  isSuspect(nodeId: string): boolean
  /** Whether most nodes are silent. */
  isWidespread(): boolean
}

interface NodeHeartbeat {
  readonly id: string
  readonly seenAt: number | undefined
  readonly isStarting?: boolean
}

const suspectMs = 15_000
const defaultLostMs = 60_000
const startLimitMs = 15 * 60_000
const longestGapMs = 10_000

interface Observed {
  readonly seenAt: number | undefined
  readonly sinceMs: number
  /** When this process first saw that the node is starting. Undefined while it serves. */
  readonly startingSinceMs: number | undefined
}

/** `lostMs`: a node that is silent for so long is lost. */
export function createSilence({ lostMs = defaultLostMs } = {}): Silence {
  let observed = new Map<string, Observed>()
  let lastMs = Number.NEGATIVE_INFINITY
  const silentMs = (nodeId: string): number => {
    const found = observed.get(nodeId)
    if (!found) return 0
    const startingMs = lastMs - (found.startingSinceMs ?? lastMs)
    return startingMs >= startLimitMs ? startingMs : lastMs - found.sinceMs
  }
  const silent = (limitMs: number) => [...observed.keys()].filter((id) => silentMs(id) >= limitMs)
  // Not the limit of lost nodes: the first one to reach that would be lost before most have reached it.
  const isWidespread = () => silent(suspectMs).length * 2 > observed.size
  return {
    note(nodes, nowMs) {
      const before = nowMs - lastMs > longestGapMs ? new Map<string, never>() : observed
      const wasWidespread = isWidespread()
      observed = new Map(nodes.map((node) => [node.id, observe(before.get(node.id), node, nowMs)]))
      lastMs = nowMs
      if (!wasWidespread || isWidespread()) return
      observed = new Map(nodes.map((node) => [node.id, observe(undefined, node, nowMs)]))
    },
    silentMs,
    lost: () => (isWidespread() ? [] : silent(lostMs)),
    isSuspect: (nodeId) =>
      silentMs(nodeId) >= suspectMs || observed.get(nodeId)?.startingSinceMs !== undefined,
    isWidespread,
  }
}

function observe(
  before: Observed | undefined,
  { seenAt, isStarting = false }: NodeHeartbeat,
  nowMs: number,
): Observed {
  return {
    seenAt,
    sinceMs: before && before.seenAt === seenAt ? before.sinceMs : nowMs,
    startingSinceMs: isStarting ? (before?.startingSinceMs ?? nowMs) : undefined,
  }
}
