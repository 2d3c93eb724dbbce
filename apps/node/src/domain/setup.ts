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

/** What has to be done before a sandbox is ready; undefined: nothing. */
export function beginningOf({ startCommand, readyCommand }: Setup): Beginning | undefined {
  if (startCommand === undefined && readyCommand === undefined) return undefined
  const unsaid = startCommand === undefined ? 'true' : `sleep ${unsaidSeconds}`
  return { readyCommand: readyCommand ?? unsaid }
}

export interface Beginning {
  readonly readyCommand: string
}

/** How long a program may need that nobody says how to ask, as published clients expect. */
const unsaidSeconds = 20
