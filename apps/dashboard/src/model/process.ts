/** A process as envd lists it, as JSON of its protocol. */
export interface ProcessInfo {
  readonly pid: number
  readonly tag?: string
  readonly config?: {
    readonly cmd?: string
    readonly args?: readonly string[]
    readonly cwd?: string
  }
}

export function commandOf({ config }: ProcessInfo): string {
  return [config?.cmd ?? '?', ...(config?.args ?? [])].join(' ')
}

/** envd reports -1 for a process that a signal ended. */
export function endOf(exitCode: number | string): string {
  return String(exitCode) === '-1' ? 'killed by a signal' : `exit code ${exitCode}`
}

/** Set by the server for terminals that the dashboard started. */
export const terminalTag = 'dashboard-terminal'
