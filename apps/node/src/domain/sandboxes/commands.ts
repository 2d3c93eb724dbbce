/** Runs programs in a running sandbox. */
export interface Commands {
  /** Runs a command to its end. Skips blank lines of output. */
  run(endpoint: EnvdEndpoint, command: Command, options: RunOptions): Promise<CommandResult>
  /** Starts a command and returns once it runs. The command keeps running. */
  start(endpoint: EnvdEndpoint, command: Command, signal: AbortSignal): Promise<void>
  /** Copies a file of the node into the sandbox, owned by root. */
  put(endpoint: EnvdEndpoint, file: string, path: string, signal: AbortSignal): Promise<void>
}

/** Address and token of a sandbox's envd. */
export interface EnvdEndpoint {
  readonly address: string
  readonly accessToken: string | undefined
}

export interface Command {
  readonly command: string
  readonly args: readonly string[]
  readonly user: string
  readonly cwd: string | undefined
  readonly envVars: Readonly<Record<string, string>>
}

export interface RunOptions {
  readonly onLine: OnLine
  readonly signal: AbortSignal
}

/** Resolves when the next line may be delivered. */
export type OnLine = (stream: 'stdout' | 'stderr', line: string) => Promise<void>

export interface CommandResult {
  /** Undefined when the command was killed, for example by a signal. */
  readonly exitCode: number | undefined
  /** Reason when there is no exit code. */
  readonly reason?: string
}

/** The sandbox has no user of the name that a command should run as. */
export class UnknownUserError extends Error {
  override readonly name = 'UnknownUserError'
}

/** Wraps text in a login shell, as the published clients do. */
export function inShell(text: string): Pick<Command, 'command' | 'args'> {
  return { command: '/bin/bash', args: ['-l', '-c', text] }
}
