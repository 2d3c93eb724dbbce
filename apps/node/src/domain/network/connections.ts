/** Connections of a sandbox to one destination, as the firewall or the egress process decided about them. */
export interface NetworkConnection {
  /** Server name, or name that was asked for. Absent: only the address decided. */
  readonly name?: string | undefined
  /** Absent for DNS queries. */
  readonly address?: string | undefined
  readonly port: number
  readonly protocol: 'tcp' | 'udp' | 'dns'
  readonly verdict: 'allowed' | 'denied'
  readonly count: number
  /** Absent: unknown, because the firewall keeps only the last time. */
  readonly firstMs?: number | undefined
  readonly lastMs: number
  /** Bytes of closed connections. Absent: not counted, because the connection did not pass the egress process. */
  readonly sentBytes?: number | undefined
  readonly receivedBytes?: number | undefined
}

/** Entries that a caller gets. */
const maxConnections = 500

/** Returns the newest connections since the start of the sandbox, newest first. */
export function newestConnections(
  connections: readonly NetworkConnection[],
  startedMs: number,
): NetworkConnection[] {
  return connections
    .filter(({ lastMs }) => lastMs >= startedMs)
    .toSorted((one, other) => other.lastMs - one.lastMs)
    .slice(0, maxConnections)
}
