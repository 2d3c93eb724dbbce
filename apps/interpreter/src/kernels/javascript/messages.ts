/** Message of the thread that reads requests to the main thread. */
export type FromThread =
  | { readonly type: 'interrupt' }
  | {
      readonly type: 'execute'
      readonly code: string
      /** Variables of the sandbox, which stay. */
      readonly sandbox_variables: Readonly<Record<string, string>>
      /** Variables of this execution only. */
      readonly variables: Readonly<Record<string, string>>
    }

export interface ToThread {
  /** No code runs: there is nothing to interrupt. */
  readonly type: 'idle'
}
