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
  /** Lists those of these sandboxes that were denied something since a time, newest first. An older node lists others too. */
  listDenied(
    request: { readonly sinceMs: number; readonly sandboxIds: readonly string[] },
    signal: AbortSignal,
  ): Promise<DeniedSandbox[]>
}

export interface DeniedSandbox {
  readonly sandboxId: string
  /** Time of the last denial in Unix milliseconds. */
  readonly lastMs: number
}
