import { Fault } from '@atoll/kit/fault'
import type { Variables } from './environment.ts'
import type { User } from '../access/user.ts'

/** Everything the kernel is told about a process to be started. */
export interface Launch {
  readonly command: string
  readonly args: readonly string[]
  readonly env: Variables
  readonly cwd: string
  readonly user: User
}

/** Refuses what exec(2) could not take, with a reason, instead of a process that dies without one. */
export function checkLaunch({ command, args, env, cwd }: Launch): void {
  if (command === '') refuse('The command is empty: set process.cmd')
  for (const name of Object.keys(env)) {
    if (name === '' || name.includes('=')) {
      refuse(`'${name}' cannot be the name of an environment variable`)
    }
  }
  const variables = Object.entries(env).map(([name, value]) => `${name}=${value}`)
  let total = 0
  for (const text of [command, cwd, ...args, ...variables]) {
    if (text.includes('\0')) refuse('Command, arguments, variables and cwd cannot hold a NUL')
    const size = Buffer.byteLength(text) + 1
    if (size > stringLimitBytes) {
      refuse(`One argument or variable is longer than ${stringLimitBytes - 1} bytes`)
    }
    total += size + pointerBytes
  }
  if (total > totalLimitBytes) {
    refuse(`Arguments and environment together are larger than ${totalLimitBytes} bytes`)
  }
}

/**
 * The command line of the helper program that takes on the identity and then executes the command in its own place, so
 * that the pid of the helper is the pid of the command.
 */
export function guestExecArguments({ command, args, cwd, user }: Launch): string[] {
  const identity = ['--uid', String(user.uid), '--gid', String(user.gid)]
  const groups = ['--groups', user.groups.join(',')]
  const place = ['--cwd', cwd, '--oom', String(oomScoreAdjust)]
  return ['exec', ...identity, ...groups, ...place, '--', command, ...args]
}

/** Processes of users go before the daemon when memory runs out. */
const oomScoreAdjust = 100

// execve(2): one string is at most 32 pages, all together a quarter of the stack limit, 8 MiB by default. The margin is
// for the helper's own arguments.
const stringLimitBytes = 32 * 4096
const totalLimitBytes = 2 * 1024 * 1024 - 16 * 1024
const pointerBytes = 8

function refuse(message: string): never {
  throw new Fault('invalid', 'bad_process', message)
}
