import type { Ingress } from './ingress.ts'

/** A running sandbox as the edge sees it: where its ports are, and who is talking to them. */
export interface RunningSandbox {
  readonly id: string
  readonly address: string
  readonly ingress: Ingress
  /** How many passes are open now. */
  readonly open: number
  /**
   * `cut` is called once when the sandbox ends (soon, if it has ended already), and before that whenever it is about to
   * be paused. Returns what takes it back when the pass is over.
   */
  attach(cut: (reason: CutReason) => void): () => void
}

/** `closing`: the edge stops and the sandbox goes on. `pausing`: nobody new may come, and it may also run on. */
export type CutReason = 'ended' | 'closing' | 'pausing'

/** Where running sandboxes are learnt from: the node. */
export interface SandboxSource {
  /** Undefined when no such sandbox runs; one that is being paused still does. Throws a `Fault` when the node cannot be asked. */
  get(id: string, signal: AbortSignal): Promise<SandboxPlace | undefined>
  /** First all that run, then `synced`, then changes as they happen. */
  watch(signal: AbortSignal): AsyncIterable<SandboxChange>
}

export interface SandboxPlace {
  readonly id: string
  readonly address: string
  readonly ingress: Ingress
  /** Nobody new is to be led to it: it stands still, or soon will. */
  readonly isPausing: boolean
}

export type SandboxChange =
  /** Or not paused after all. */
  | { readonly kind: 'started'; readonly sandbox: SandboxPlace }
  | { readonly kind: 'pausing'; readonly id: string }
  /** Or paused: it is not reached any more. */
  | { readonly kind: 'ended'; readonly id: string }
  | { readonly kind: 'synced' }
