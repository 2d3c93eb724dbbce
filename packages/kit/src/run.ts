import { spawn } from 'node:child_process'

/** Runs one program to its end. Arguments are an array, never a shell string; output and time are bounded. */
export async function run(
  command: string,
  args: readonly string[],
  options: RunOptions = {},
): Promise<string> {
  return outputOf(command, args, await tryRun(command, args, options))
}

/** Like `run`, for callers to whom a non-zero exit is an answer and not a failure. */
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
      ...(options.env && { env: options.env }),
      ...(options.cwd && { cwd: options.cwd }),
    })
    const stdout = collect(child.stdout)
    const stderr = collect(child.stderr)
    child.once('error', reject)
    child.once('close', (code, signal) => {
      resolve({ code, signal, stdout: stdout(), stderr: stderr() })
    })
    child.stdin?.on('error', () => {}) // the program may end without reading its input
    child.stdin?.end(options.input ?? '')
  })
}

/** What a program printed that has ended as it should. */
export function outputOf(command: string, args: readonly string[], result: RunResult): string {
  if (result.code !== 0) throw new CommandFailed(command, args, result)
  return result.stdout
}

/** Whoever runs programs: we ourselves, or somebody in our place. */
export interface Runner {
  readonly run: typeof run
  readonly tryRun: typeof tryRun
}

export interface RunOptions {
  readonly input?: string
  /** Nothing to read, and what is printed is lost: for programs that leave others behind, which would hold it open. */
  readonly stdio?: 'ignore'
  readonly timeoutMs?: number
  readonly signal?: AbortSignal
  readonly env?: NodeJS.ProcessEnv
  readonly cwd?: string
}

export interface RunResult {
  /** Null when a signal (or the time limit) ended it. */
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
  readonly stdout: string
  readonly stderr: string
}

class CommandFailed extends Error {
  override readonly name = 'CommandFailed'
  readonly result: RunResult

  constructor(command: string, args: readonly string[], result: RunResult) {
    const outcome = result.code === null ? `ended by ${result.signal}` : `exit ${result.code}`
    const said = (result.stderr || result.stdout).trim().slice(-2000)
    super(`${command} ${args.join(' ')}: ${outcome}${said && `: ${said}`}`)
    this.result = result
  }
}

export const defaultTimeoutMs = 60_000
/** Of each of the two outputs; the rest is lost. */
export const outputLimitBytes = 4 * 1024 * 1024

function collect(stream: NodeJS.ReadableStream | null): () => string {
  const chunks: Buffer[] = []
  let size = 0
  stream?.on('data', (chunk: Buffer) => {
    if (size < outputLimitBytes) chunks.push(chunk)
    size += chunk.length
  })
  return () => Buffer.concat(chunks).toString('utf8')
}
