/** Starts programs on pipes through node:child_process. */
import { spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { closeSync } from 'node:fs'
import { constants } from 'node:os'
import { Fault } from '@atoll/kit/fault'
import type { Exit } from '../domain/exit.ts'
import { helperArguments } from '../domain/launch.ts'
import type { Launch } from '../domain/launch.ts'
import type { SpawnedProcess } from '../domain/process.ts'
import type { FifoPool } from './fifo-pool.ts'
import { discardPipe, openInput, openOutput } from './pipe.ts'
import type { Pipe } from './pipe.ts'
import { toInput, untilClosed } from './streams.ts'

export interface PipeTools {
  /** The helper program that takes on the identity and becomes the command. */
  readonly helper: string
  readonly fifos: FifoPool
}

export async function spawnOnPipes(
  tools: PipeTools,
  launch: Launch,
  options: { readonly stdin: boolean },
): Promise<SpawnedProcess> {
  try {
    const pipes = await openPipes(tools.fifos, options)
    return await startOn(pipes, tools.helper, launch)
  } catch (cause) {
    throw new Fault('invalid', 'spawn_failed', `The system refused to start ${launch.command}`, {
      cause,
    })
  }
}

interface Pipes {
  readonly stdin: Pipe | undefined
  readonly stdout: Pipe
  readonly stderr: Pipe
}

async function openPipes(fifos: FifoPool, options: { readonly stdin: boolean }): Promise<Pipes> {
  const [out = '', err = '', into] = await fifos.take(options.stdin ? 3 : 2)
  using opened = new DisposableStack()
  try {
    const stdout = opened.adopt(openOutput(out), discardPipe)
    const stderr = opened.adopt(openOutput(err), discardPipe)
    const stdin = into === undefined ? undefined : opened.adopt(openInput(into), discardPipe)
    opened.move()
    return { stdin, stdout, stderr }
  } catch (cause) {
    fifos.forget()
    throw cause
  }
}

async function startOn(pipes: Pipes, helper: string, launch: Launch): Promise<SpawnedProcess> {
  const { stdin, stdout, stderr } = pipes
  using unused = new DisposableStack()
  unused.defer(release)
  const child = spawnChild(pipes, helper, launch)
  const exit = exitOf(child)
  await once(child, 'spawn')
  child.on('error', () => {}) // of a kill that came too late: the exit tells what happened
  const { pid } = child
  if (pid === undefined) throw new Error('a process without a pid')
  void exit.then(() => stdin?.ours.destroy()) // nobody is left to answer for the rest of the input
  unused.move()
  return {
    pid,
    outputs: [
      { kind: 'stdout', chunks: untilClosed(stdout.ours) },
      { kind: 'stderr', chunks: untilClosed(stderr.ours) },
    ],
    exit,
    ...(stdin && { input: toInput(stdin.ours) }),
    kill: (signal) => void child.kill(signal),
    release,
  }

  function release(): void {
    for (const pipe of [stdin, stdout, stderr]) pipe?.ours.destroy()
  }
}

/** An end that stayed open here would keep the other from ever seeing end-of-file. */
function spawnChild({ stdin, stdout, stderr }: Pipes, helper: string, launch: Launch) {
  try {
    return spawn(helper, helperArguments(launch), {
      cwd: '/',
      env: launch.env,
      stdio: [stdin?.theirs ?? 'ignore', stdout.theirs, stderr.theirs],
    })
  } finally {
    for (const pipe of [stdin, stdout, stderr]) if (pipe) closeSync(pipe.theirs)
  }
}

function exitOf(child: ChildProcess): Promise<Exit> {
  return new Promise((resolve) => {
    child.once('exit', (code, signal) => {
      resolve(
        signal === null
          ? { by: 'exit', code: code ?? 0 }
          : { by: 'signal', signal: constants.signals[signal] },
      )
    })
  })
}
