import { spawn } from 'node:child_process'

/** Runs one program to its end. Arguments are an array, never a shell string; output and time are bounded. */
export async function run(
  command: string,
  args: readonly string[],
  options: RunOptions = {},
): Promise<string> {
  const result = await tryRun(command, args, options)
  if (result.code !== 0) throw new CommandFailed(command, args, result)
  return result.stdout
}

/** Like `run`, for callers to whom a non-zero exit is an answer and not a failure. */
export function tryRun(
  command: string,
  args: readonly string[],
  options: RunOptions = {},
): Promise<RunResult> {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, {
      stdio: ['pipe', 'pipe', 'pipe'],
      timeout: options.timeoutMs ?? 60_000,
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
    child.stdin.on('error', () => {}) // the program may end without reading its input
    child.stdin.end(options.input ?? '')
  })
}

export interface RunOptions {
  readonly input?: string
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

const outputLimitBytes = 4 * 1024 * 1024

function collect(stream: NodeJS.ReadableStream): () => string {
  const chunks: Buffer[] = []
  let size = 0
  stream.on('data', (chunk: Buffer) => {
    if (size < outputLimitBytes) chunks.push(chunk)
    size += chunk.length
  })
  return () => Buffer.concat(chunks).toString('utf8')
}
