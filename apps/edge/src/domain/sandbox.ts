import type { Socket } from 'node:net'
import type { Ingress } from './ingress.ts'

/** A running sandbox with its address and open connections. */
export interface RunningSandbox {
  readonly id: string
  readonly generation: number
  readonly address: string
  /** Connects through the node of the sandbox. Absent: the edge reaches the address itself. */
  readonly dial?: DialSandbox | undefined
  readonly ingress: Ingress
  /** Number of open connections. */
  readonly open: number
  /**
   * Registers a connection. `onDisconnect` is called once when the sandbox ends (soon, if it has already ended), and
   * before that each time a pause begins. The returned function removes the registration.
   */
  attach(onDisconnect: (reason: DisconnectReason) => void): () => void
}

/** `closing`: the edge stops, the sandbox keeps running. `pausing`: a pause begins, which may still fail. */
export type DisconnectReason = 'ended' | 'closing' | 'pausing'

/** Source of running sandboxes, implemented by the node protocol. */
export interface SandboxSource {
  /** Returns undefined if the sandbox does not run; during a pause it still does. Throws a `Fault` if the node is silent. */
  get(id: string, signal: AbortSignal): Promise<SandboxLocation | undefined>
  /** Yields all running sandboxes, then `synced`, then changes. */
  watch(signal: AbortSignal): AsyncIterable<SandboxChange>
}

export interface SandboxLocation {
  readonly id: string
  /** Number of the sandbox's starts: of two nodes that have the sandbox, the one with the newer generation is right. */
  readonly generation: number
  readonly address: string
  readonly dial?: DialSandbox | undefined
  readonly ingress: Ingress
  /** True while the sandbox is being paused: it takes no new connections. */
  readonly isPausing: boolean
}

export type SandboxChange =
  /** Also sent when a pause failed. */
  | { readonly kind: 'started'; readonly sandbox: SandboxLocation }
  | { readonly kind: 'pausing'; readonly id: string }
  /** Also sent for a paused sandbox. */
  | { readonly kind: 'ended'; readonly id: string }
  | { readonly kind: 'synced' }

/** Connects to a port of a sandbox. Returns undefined if nothing listens or answers, or if `signal` aborts. */
export type DialSandbox = (
  sandbox: { readonly id: string; readonly generation: number },
  port: number,
  options: { readonly signal: AbortSignal },
) => Promise<Socket | undefined>
