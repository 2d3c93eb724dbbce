import type { Ingress } from './ingress.ts'

/** A running sandbox as the edge sees it: where its ports are, and who is talking to them. */
export interface RunningSandbox {
  readonly id: string
  readonly address: string
  readonly ingress: Ingress
  /** How many passes are open now. */
  readonly open: number
  /**
   * `cut` is called once when the sandbox ends (soon, if it has ended already). Returns what takes it back
   * when the pass is over.
   */
  attach(cut: (reason: CutReason) => void): () => void
}

/** `closing`: the edge stops and the sandbox goes on. */
export type CutReason = 'ended' | 'closing'

/** Where running sandboxes are learnt from: the node. */
export interface SandboxSource {
  /** Undefined when no such sandbox runs. Throws a `Fault` when the node cannot be asked. */
  get(id: string, signal: AbortSignal): Promise<SandboxPlace | undefined>
  /** First all that run, then `synced`, then changes as they happen. */
  watch(signal: AbortSignal): AsyncIterable<SandboxChange>
}

export interface SandboxPlace {
  readonly id: string
  readonly address: string
  readonly ingress: Ingress
}

export type SandboxChange =
  | { readonly kind: 'started'; readonly sandbox: SandboxPlace }
  /** Or paused: it is not reached any more. */
  | { readonly kind: 'ended'; readonly id: string }
  | { readonly kind: 'synced' }
