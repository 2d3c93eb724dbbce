/** Defaults of a template's sandboxes. Each sandbox keeps a copy for later starts. */
export interface Setup {
  /** User of commands that name no user. */
  readonly user: string
  /** Default working directory. Absent: the home of the user. */
  readonly workdir?: string
  readonly envVars: Readonly<Record<string, string>>
  /** Started when the sandbox is created. */
  readonly startCommand?: string
  /** Succeeds once the start command is ready. */
  readonly readyCommand?: string
}

export const defaultSetup: Setup = { user: 'user', envVars: {} }

/** Returns the command that succeeds once a sandbox is ready. Undefined: there is nothing to wait for. */
export function readyCommandOf({ startCommand, readyCommand }: Setup): string | undefined {
  return readyCommand ?? (startCommand === undefined ? undefined : `sleep ${defaultReadySeconds}`)
}

/** Wait for a start command without a ready command. Published clients expect 20 s. */
const defaultReadySeconds = 20
