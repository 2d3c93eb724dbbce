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
  /** Fails when nobody answers, and soon after `ended` is aborted. */
  dial(way: Way, target: Target, ended: AbortSignal): Promise<Outside>
}

export interface Outside {
  /** Not read yet; open for reading after its end of writing. */
  readonly socket: Socket
  /** What was read of it nevertheless. */
  readonly first: Buffer
}
