/** Starts programs on pipes through `guest spawner`. */
import type { Socket } from 'node:net'
import { Fault } from '@atoll/kit/fault'
import type { SpawnerProcess } from '@atoll/kit/spawner/process'
import { guestExecArguments } from '../domain/process/launch.ts'
import type { Launch } from '../domain/process/launch.ts'
import type { SpawnedProcess } from '../domain/process/process.ts'
import type { FifoPool } from './fifo-pool.ts'
import { discardPipe, openInput, openOutput } from './named-pipe.ts'
import type { Pipe } from './named-pipe.ts'
import type { PipeReader } from './pipe-reader.ts'
import { toProcessInput } from './process-streams.ts'

export interface PipeTools {
  readonly spawnerProcess: SpawnerProcess
  readonly fifos: FifoPool
}

export async function spawnOnPipes(
  tools: PipeTools,
  launch: Launch,
  options: { readonly stdin: boolean },
): Promise<SpawnedProcess> {
  try {
    const pipes = await openPipes(tools.fifos, options)
    return await startOn(pipes, tools.spawnerProcess, launch)
  } catch (cause) {
    throw new Fault(
      'invalid',
      'spawn_failed',
      `The system refused to start '${launch.command}'. Check the process limit of the sandbox.`,
      {
        cause,
      },
    )
  }
}

interface Pipes {
  readonly stdin: Pipe<Socket> | undefined
  readonly stdout: Pipe<PipeReader>
  readonly stderr: Pipe<PipeReader>
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
    fifos.discardAll()
    throw cause
  }
}

async function startOn(
  { stdin, stdout, stderr }: Pipes,
  spawner: SpawnerProcess,
  launch: Launch,
): Promise<SpawnedProcess> {
  using unused = new DisposableStack()
  for (const pipe of [stdin, stdout, stderr]) if (pipe) unused.adopt(pipe, discardPipe)
  const { pid, exit, kill } = await spawner.start({
    stdio: [stdin?.name, stdout.name, stderr.name],
    args: guestExecArguments(launch),
    env: launch.env,
  })
  unused.move()
  const [input, out, err] = [stdin?.connect(), stdout.connect(), stderr.connect()]
  void exit.then(() => input?.destroy()) // pending input can no longer be delivered
  return {
    pid,
    outputs: [
      { kind: 'stdout', chunks: out.chunks },
      { kind: 'stderr', chunks: err.chunks },
    ],
    exit,
    ...(input && { input: toProcessInput(input) }),
    kill,
    release() {
      for (const end of [input, out, err]) end?.destroy()
    },
  }
}
