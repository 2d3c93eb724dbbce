/** Outgoing connections of a sandbox to one destination, merged by the node. */
export interface NetworkConnection {
  readonly name?: string
  readonly address?: string
  readonly port: number
  readonly protocol: 'tcp' | 'udp' | 'dns'
  readonly verdict: 'allowed' | 'denied'
  readonly count: number
  readonly firstAt?: string
  readonly lastAt: string
  readonly sentBytes?: number
  readonly receivedBytes?: number
}

export interface ConnectionNode {
  list(sandboxId: string, signal: AbortSignal): Promise<NetworkConnection[]>
}
