/** Starts programs on pipes through node:child_process. */
import { spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { constants } from 'node:os'
import { Fault } from '@atoll/kit/fault'
import type { Exit } from '../domain/exit.ts'
import { helperArguments } from '../domain/launch.ts'
import type { Launch } from '../domain/launch.ts'
import type { SpawnedProcess } from '../domain/process.ts'
import { toInput, untilClosed } from './streams.ts'

export async function spawnOnPipes(
  helper: string,
  launch: Launch,
  options: { readonly stdin: boolean },
): Promise<SpawnedProcess> {
  const child = spawn(helper, helperArguments(launch), {
    cwd: '/',
    env: launch.env,
    stdio: [options.stdin ? 'pipe' : 'ignore', 'pipe', 'pipe'],
  })
  const exit = exitOf(child)
  await once(child, 'spawn').catch((cause: unknown) => refuse(launch, cause))
  child.on('error', () => {}) // of a kill that came too late: the exit tells what happened
  const { pid, stdin, stdout, stderr } = child
  if (pid === undefined || stdout === null || stderr === null) return refuse(launch, undefined)
  return {
    pid,
    outputs: [
      { kind: 'stdout', chunks: untilClosed(stdout) },
      { kind: 'stderr', chunks: untilClosed(stderr) },
    ],
    exit,
    ...(stdin && { input: toInput(stdin) }),
    kill: (signal) => void child.kill(signal),
    release: () => [stdin, stdout, stderr].forEach((stream) => stream?.destroy()),
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

function refuse(launch: Launch, cause: unknown): never {
  throw new Fault('invalid', 'spawn_failed', `The system refused to start ${launch.command}`, {
    cause,
  })
}
