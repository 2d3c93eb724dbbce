/**
 * Measures how long nodes have sent no heartbeat to any api. Only the time of this process counts: the store's last heartbeat
 * must stay the same through an unbroken series of readings. After a pause in the readings, such as an outage of the
 * store, counting begins anew. So neither clocks that differ nor an outage can make nodes look lost.
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
const lostMs = 60_000
const longestGapMs = 10_000

export function createSilence(): Silence {
  let observed = new Map<
    string,
    { readonly seenAt: number | undefined; readonly sinceMs: number }
  >()
  let starting: ReadonlySet<string> = new Set()
  let lastMs = Number.NEGATIVE_INFINITY
  const silentMs = (nodeId: string): number => {
    const found = observed.get(nodeId)
    return found ? lastMs - found.sinceMs : 0
  }
  const silent = (limitMs: number) => [...observed.keys()].filter((id) => silentMs(id) >= limitMs)
  // Not the limit of lost nodes: the first one to reach that would be lost before most have reached it.
  const isWidespread = () => silent(suspectMs).length * 2 > observed.size
  return {
    note(nodes, nowMs) {
      const before = nowMs - lastMs > longestGapMs ? new Map<string, never>() : observed
      const wasWidespread = isWidespread()
      observed = new Map(
        nodes.map(({ id, seenAt }) => {
          const known = before.get(id)
          return [id, known && known.seenAt === seenAt ? known : { seenAt, sinceMs: nowMs }]
        }),
      )
      starting = new Set(nodes.flatMap(({ id, isStarting }) => (isStarting ? [id] : [])))
      lastMs = nowMs
      if (!wasWidespread || isWidespread()) return
      for (const [id, { seenAt }] of observed) observed.set(id, { seenAt, sinceMs: nowMs })
    },
    silentMs,
    lost: () => (isWidespread() ? [] : silent(lostMs)),
    isSuspect: (nodeId) => silentMs(nodeId) >= suspectMs || starting.has(nodeId),
    isWidespread,
  }
}
