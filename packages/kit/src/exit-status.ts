/** How a process ended (wait(2)): with an exit code, or by a signal. */
export type ExitStatus =
  | { readonly by: 'exit'; readonly code: number }
  | { readonly by: 'signal'; readonly signal: number }
