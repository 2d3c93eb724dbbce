/** What a template says of how its sandboxes begin. It stays with each of them, for whenever that starts anew. */
export interface Setup {
  /** Who runs what is started without saying by whom. */
  readonly user: string
  /** Where that is; absent: in the home of its user. */
  readonly workdir?: string
  readonly envVars: Readonly<Record<string, string>>
  /** Runs from the beginning. */
  readonly startCommand?: string
  /** Succeeds once what was started is ready. */
  readonly readyCommand?: string
}

export const usualSetup: Setup = { user: 'user', envVars: {} }

/** What succeeds once a sandbox has begun; undefined: there is nothing to wait for. */
export function readyCommandOf({ startCommand, readyCommand }: Setup): string | undefined {
  return readyCommand ?? (startCommand === undefined ? undefined : `sleep ${unsaidSeconds}`)
}

/** How long a program may need that nobody says how to ask, as published clients expect. */
const unsaidSeconds = 20
