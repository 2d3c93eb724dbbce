import type { Socket } from 'node:net'
import type { SandboxRules, Verdict } from './destination.ts'

/** Where a sandbox meant a connection to go. */
export interface Target {
  readonly address: string
  readonly port: number
}

/** How a connection leaves the host. */
export interface Way {
  readonly verdict: Exclude<Verdict, { kind: 'refuse' }>
  readonly proxy: SandboxRules['proxy']
}

export interface Dialer {
  /** Fails when nobody answers. The socket stays open for reading after its end of writing. */
  dial(way: Way, target: Target, signal: AbortSignal): Promise<Socket>
}
