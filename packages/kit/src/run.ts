import { spawn } from 'node:child_process'
import { commandEnvironment } from './command-environment.ts'

/** Runs a program to completion. Arguments are an array, never a shell string. Output and time are limited. */
export async function run(
  command: string,
  args: readonly string[],
  options: RunOptions = {},
): Promise<string> {
  return outputOf(command, args, await tryRun(command, args, options))
}

/** Same as `run`, but returns a non-zero exit instead of throwing. */
export function tryRun(
  command: string,
  args: readonly string[],
  options: RunOptions = {},
): Promise<RunResult> {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, {
      stdio: options.stdio ?? 'pipe',
      timeout: options.timeoutMs ?? defaultTimeoutMs,
      killSignal: 'SIGKILL',
      ...(options.signal && { signal: options.signal }),
      env: commandEnvironment(options.env),
      ...(options.cwd && { cwd: options.cwd }),
    })
    const stdout = collectOutput(child.stdout)
    const stderr = collectOutput(child.stderr)
    let failure: Error | undefined
    child.once('error', (error) => {
      failure = error
      if (!options.awaitsEnd) reject(error)
    })
    child.once('close', (code, signal) => {
      if (failure) reject(failure)
      else resolve({ code, signal, stdout: stdout(), stderr: stderr() })
    })
    child.stdin?.on('error', () => {}) // the program may exit without reading its input
    child.stdin?.end(options.input ?? '')
  })
}

/** Returns the standard output of a successful program. Throws if the program failed. */
export function outputOf(command: string, args: readonly string[], result: RunResult): string {
  if (result.code !== 0) throw new CommandFailed(command, args, result)
  return result.stdout
}

/** Runs programs in this process or through a spawner. */
export interface Runner {
  readonly run: typeof run
  readonly tryRun: typeof tryRun
}

export interface RunOptions {
  readonly input?: string
  /**
   * No input, and output is discarded. For programs that leave background processes behind, which would keep the pipes
   * open.
   */
  readonly stdio?: 'ignore'
  readonly timeoutMs?: number
  readonly signal?: AbortSignal
  /** Whether an abort rejects only after the program, and all who hold its output, have ended. Default: at once. */
  readonly awaitsEnd?: boolean
  /** Default: the environment of this process. `LC_ALL` is always `C.UTF-8`. */
  readonly env?: NodeJS.ProcessEnv
  readonly cwd?: string
}

export interface RunResult {
  /** Null if a signal or the timeout ended the program. */
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
  readonly stdout: string
  readonly stderr: string
}

/** The message has the command line and the output of the program: for logs, not for users. */
export class CommandFailed extends Error {
  override readonly name = 'CommandFailed'
  readonly result: RunResult

  constructor(command: string, args: readonly string[], result: RunResult) {
    const outcome = result.code === null ? `killed by ${result.signal}` : `exit ${result.code}`
    const output = (result.stderr || result.stdout).trim().slice(-2000)
    super(`${command} ${args.join(' ')}: ${outcome}${output && `: ${output}`}`)
    this.result = result
  }
}

export const defaultTimeoutMs = 60_000
/** Limit for each of stdout and stderr; the rest is dropped. */
export const outputLimitBytes = 4 * 1024 * 1024

function collectOutput(stream: NodeJS.ReadableStream | null): () => string {
  const chunks: Buffer[] = []
  let size = 0
  stream?.on('data', (chunk: Buffer) => {
    if (size < outputLimitBytes) chunks.push(chunk)
    size += chunk.length
  })
  return () => Buffer.concat(chunks).toString('utf8')
}
