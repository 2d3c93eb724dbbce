/** How a process ended, as wait(2) tells it: an exit code or the number of the signal that ended it. */
export type Exit =
  | { readonly by: 'exit'; readonly code: number }
  | { readonly by: 'signal'; readonly signal: number }
