/** Decisions about the connections and DNS queries of one sandbox. Equal ones share an entry. */
export interface Decisions {
  /** Returns a function that adds the bytes of the connection to the entry. */
  record(decision: Decision): (bytes: TransferredBytes) => void
  list(): RecordedDecision[]
  /** Time of the last denial; 0 if there was none. */
  lastDeniedMs(): number
}

export interface Decision {
  /** Server name of the connection, or name that was asked for. */
  readonly name: string | undefined
  /** Absent for DNS queries. */
  readonly address?: string | undefined
  readonly port: number
  readonly protocol: 'tcp' | 'dns'
  readonly verdict: 'allowed' | 'denied'
}

export interface TransferredBytes {
  /** Bytes that the sandbox sent. */
  readonly sent: number
  readonly received: number
}

export interface RecordedDecision extends Decision {
  readonly count: number
  readonly firstMs: number
  readonly lastMs: number
  readonly sentBytes: number
  readonly receivedBytes: number
}

/** Entries per sandbox. The one that was not used for longest goes first. */
const maxEntries = 500
/** Names come from the sandbox. */
const plainName = /^[a-zA-Z0-9._-]{1,253}$/

/** `nowMs` is the time of the clock. */
export function createDecisions(nowMs: () => number): Decisions {
  const entries = new Map<
    string,
    { -readonly [Key in keyof RecordedDecision]: RecordedDecision[Key] }
  >()
  let lastDeniedMs = 0
  return {
    record(decision) {
      const { protocol, verdict, address, port } = decision
      const name =
        decision.name !== undefined && plainName.test(decision.name) ? decision.name : undefined
      const key = [verdict, protocol, name ?? address, port].join(' ')
      const at = nowMs()
      if (verdict === 'denied') lastDeniedMs = at
      const known = entries.get(key)
      const zero = { count: 0, firstMs: at, sentBytes: 0, receivedBytes: 0 }
      const entry = { ...zero, ...known, ...decision, name, lastMs: at }
      entry.count += 1
      entries.delete(key)
      entries.set(key, entry)
      if (entries.size > maxEntries) {
        const [oldest] = entries.keys()
        if (oldest !== undefined) entries.delete(oldest)
      }
      return ({ sent, received }) => {
        const current = entries.get(key)
        if (!current) return
        current.sentBytes += sent
        current.receivedBytes += received
      }
    },
    list: () => [...entries.values()].map((entry) => ({ ...entry })),
    lastDeniedMs: () => lastDeniedMs,
  }
}
