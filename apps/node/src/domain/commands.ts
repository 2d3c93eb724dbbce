/** How programs are started in a sandbox that runs. */
export interface Commands {
  /** Runs one to its end. Blank lines are left out. */
  run(door: Door, command: Command, options: RunOptions): Promise<Ended>
  /** Returns once it runs; it goes on by itself. */
  start(door: Door, command: Command, signal: AbortSignal): Promise<void>
  /** Writes a file of the node into the sandbox, for root. */
  put(door: Door, file: string, path: string, signal: AbortSignal): Promise<void>
}

/** Where a sandbox is spoken to, and by whom it lets itself be spoken to. */
export interface Door {
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

/** Returns once the next line may come. */
export type OnLine = (stream: 'stdout' | 'stderr', line: string) => Promise<void>

export interface Ended {
  /** Undefined when it did not end by itself. */
  readonly exitCode: number | undefined
  /** How it ended otherwise. */
  readonly ending?: string
}

/** As clients of sandboxes run what people type. */
export function inShell(text: string): Pick<Command, 'command' | 'args'> {
  return { command: '/bin/bash', args: ['-l', '-c', text] }
}
