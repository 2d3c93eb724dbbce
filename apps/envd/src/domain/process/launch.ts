import { Fault } from '@atoll/kit/fault'
import type { Variables } from './environment.ts'
import type { User } from '../access/user.ts'

/** Arguments of a process start. */
export interface Launch {
  readonly command: string
  readonly args: readonly string[]
  readonly env: Variables
  readonly cwd: string
  readonly user: User
}

/** Throws a fault for arguments that execve(2) would refuse; otherwise the process would fail without a message. */
export function checkLaunch({ command, args, env, cwd }: Launch): void {
  if (command === '') refuse('The command is empty: set process.cmd')
  for (const name of Object.keys(env)) {
    if (name === '' || name.includes('=')) {
      refuse(`'${name}' is not a valid name of an environment variable: it is empty or contains =`)
    }
  }
  const variables = Object.entries(env).map(([name, value]) => `${name}=${value}`)
  let total = 0
  for (const text of [command, cwd, ...args, ...variables]) {
    if (text.includes('\0')) refuse('Command, arguments, variables and cwd must not contain NUL')
    const size = Buffer.byteLength(text) + 1
    if (size > stringLimitBytes) {
      refuse(`An argument or variable exceeds the limit of ${stringLimitBytes - 1} bytes`)
    }
    total += size + pointerBytes
  }
  if (total > totalLimitBytes) {
    refuse(`Arguments and environment exceed the limit of ${totalLimitBytes} bytes in total`)
  }
}

/**
 * Builds the arguments of `guest exec`, which switches to the user and then executes the command in its own
 * process, so the pid stays the same.
 */
export function guestExecArguments({ command, args, cwd, user }: Launch): string[] {
  const identity = ['--uid', String(user.uid), '--gid', String(user.gid)]
  const groups = ['--groups', user.groups.join(',')]
  const settings = ['--cwd', cwd, '--oom', String(oomScoreAdjust)]
  return ['exec', ...identity, ...groups, ...settings, '--', command, ...args]
}

/** Makes the OOM killer prefer user processes over envd. */
const oomScoreAdjust = 100

// execve(2) allows 32 pages per string, and a quarter of the stack limit (8 MiB by default) in total. The margin is
// for the arguments of `guest exec`.
const stringLimitBytes = 32 * 4096
const totalLimitBytes = 2 * 1024 * 1024 - 16 * 1024
const pointerBytes = 8

function refuse(message: string): never {
  throw new Fault('invalid', 'bad_process', message)
}
