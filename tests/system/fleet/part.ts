import { spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { waitFor } from '@atoll/kit/wait'
import { repository } from '../installation.ts'

/** One process of a fleet, such as `atoll api` or `atoll node run`. */
export interface Part {
  readonly pid: () => number
  output(): string
  start(): Promise<void>
  stop(signal: 'SIGTERM' | 'SIGKILL'): Promise<void>
}

/** Starts the part and waits until its output has `readyText`. */
export async function startPart(
  args: readonly string[],
  env: NodeJS.ProcessEnv,
  readyText: string,
): Promise<Part> {
  let child: ChildProcess | undefined
  let output = ''
  const start = async (): Promise<void> => {
    output = ''
    // Start Node.js directly: signals must reach the part itself, not a shell.
    const main = join(repository, 'apps/cli/src/main.ts')
    const started = spawn(process.execPath, [main, ...args], {
      env,
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    child = started
    for (const stream of [started.stdout, started.stderr]) {
      stream.setEncoding('utf8').on('data', (text: string) => (output += text))
    }
    await waitFor(
      `atoll ${args.join(' ')} to be ready`,
      () => {
        if (hasEnded(started)) throw new Error(`atoll ${args.join(' ')} ended:\n${output}`)
        return output.includes(readyText)
      },
      { timeoutMs: 300_000, intervalMs: 50 },
    )
  }
  const stop = async (signal: 'SIGTERM' | 'SIGKILL'): Promise<void> => {
    if (!child || hasEnded(child)) return
    const exit = once(child, 'exit')
    child.kill(signal)
    await exit
  }
  try {
    await start()
  } catch (error) {
    await stop('SIGKILL')
    throw error
  }
  return { pid: () => child?.pid ?? 0, output: () => output, start, stop }
}

function hasEnded({ exitCode, signalCode }: ChildProcess): boolean {
  return exitCode !== null || signalCode !== null
}
