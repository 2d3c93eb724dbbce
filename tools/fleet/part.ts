import { spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { waitFor } from '@atoll/kit/wait'
import { atollProgram } from '../bundle/programs.mjs'

/** One process of a fleet, such as `atoll api` or `atoll node run`. */
export interface Part {
  readonly name: string
  readonly pid: () => number
  isRunning(): boolean
  /** Returns the last output of the current process. */
  output(): string
  start(): Promise<void>
  /** Runs another release from the next start on, from its folder. */
  setRelease(folder: string): void
  stop(signal: 'SIGTERM' | 'SIGKILL'): Promise<void>
}

export interface PartOptions {
  readonly args: readonly string[]
  readonly env: NodeJS.ProcessEnv
  /** Text of the output after which the part is ready. */
  readonly ready: string
  /** Program and arguments that run the part on another machine. */
  readonly enter?: readonly string[]
  /** Receives the output. */
  readonly onOutput?: (text: string) => void
  /** Folder of the release. Default: this one. */
  readonly release?: string
}

/** Folder of this release. */
export const thisRelease = join(import.meta.dirname, '../..')
export const main = atollProgram(thisRelease)
const outputLimit = 256 * 1024
/** Long enough for a machine whose load is 20 times its cores. */
const startLimitMs = 900_000

/** A part that does not run yet. It ends with this process. */
export function createPart(options: PartOptions): Part {
  const { args, env, ready, enter = [], onOutput } = options
  let { release = thisRelease } = options
  const name = `atoll ${args.join(' ')}`
  let child: ChildProcess | undefined
  let output = ''
  const launch = (): ChildProcess => {
    output = ''
    // No shell in between: signals must reach the part itself.
    const bound = [
      'setpriv',
      '--pdeathsig',
      'KILL',
      process.execPath,
      atollProgram(release),
      ...args,
    ]
    const [program = '', ...rest] = [...enter, ...bound]
    const started = spawn(program, rest, { env, stdio: ['ignore', 'pipe', 'pipe'] })
    for (const stream of [started.stdout, started.stderr]) {
      stream.setEncoding('utf8').on('data', (text: string) => {
        output = `${output}${text}`.slice(-outputLimit)
        onOutput?.(text)
      })
    }
    return started
  }
  const isRunning = () => child !== undefined && !hasEnded(child)
  const stop = async (signal: 'SIGTERM' | 'SIGKILL'): Promise<void> => {
    if (!child || hasEnded(child)) return
    const exit = once(child, 'exit')
    child.kill(signal)
    await exit
  }
  return {
    ...{ name, isRunning, stop },
    pid: () => child?.pid ?? 0,
    output: () => output,
    setRelease: (folder) => void (release = folder),
    async start() {
      if (isRunning()) return
      const started = launch()
      child = started
      const isReady = () => {
        if (hasEnded(started)) throw new Error(`${name} ended:\n${output}`)
        return output.includes(ready)
      }
      const limits = { timeoutMs: startLimitMs, intervalMs: 50 }
      await waitFor(`${name} to be ready`, isReady, limits).catch(async (error: unknown) => {
        await stop('SIGKILL')
        throw error
      })
    },
  }
}

function hasEnded({ exitCode, signalCode }: ChildProcess): boolean {
  return exitCode !== null || signalCode !== null
}
