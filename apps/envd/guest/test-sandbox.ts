/**
 * Simulated sandbox: the guest program as PID 1 of new pid and mount namespaces, with its own users: `user` (in
 * group sudo), `member` (primary group wheel), `other` (in neither) and root.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmod, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { globSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { run, tryRun, type RunResult } from '@atoll/kit/run'
import { waitFor } from '@atoll/kit/wait'

const users = { root: 0, user: 61_000, other: 61_001, unlisted: 61_002, member: 61_003 } as const
export type User = keyof typeof users

export interface Guest extends AsyncDisposable {
  readonly directory: string
  readonly program: string
  readonly socketPath: string
}

/** Compiles the guest program as a node does, but with the socket in the test's folder. */
export async function buildGuest(): Promise<Guest> {
  const directory = await mkdtemp(join(tmpdir(), 'atoll-guest-'))
  await chmod(directory, 0o755)
  const socketPath = join(directory, 'run', 'sudo.sock')
  const program = join(directory, 'guest')
  const sources = globSync(join(import.meta.dirname, '*.c'))
  const flags = ['-static', '-Os', '-s', '-Wall', '-Wextra', '-Werror']
  await run('musl-gcc', [...flags, `-DSOCKET_PATH="${socketPath}"`, ...sources, '-o', program])
  await symlink(program, join(directory, 'sudo'))
  return {
    directory,
    program,
    socketPath,
    [Symbol.asyncDispose]: () => rm(directory, { recursive: true, force: true }),
  }
}

export interface TestSandbox extends AsyncDisposable {
  /** PID 1 of the sandbox, as the host sees it. */
  readonly pid: number
  /** Exit code of PID 1, once it has exited. */
  readonly ended: Promise<number | null>
  as(user: User, command: readonly string[], input?: string): Promise<RunResult>
  terminal(user: User, shell: string): Terminal
}

export async function startTestSandbox(
  guest: Guest,
  daemon: readonly string[],
  options: { readonly sudo: boolean } = { sudo: true },
): Promise<TestSandbox> {
  const passwd = join(guest.directory, 'passwd')
  const group = join(guest.directory, 'group')
  await writeFile(passwd, passwdText)
  await writeFile(group, groupText)
  const script = `mount --bind ${passwd} /etc/passwd && mount --bind ${group} /etc/group && exec "$@"`
  const namespaces = ['--mount', '--pid', '--fork', '--mount-proc', '--kill-child']
  const init = [guest.program, 'init', ...(options.sudo ? ['--sudo'] : []), '--', ...daemon]
  const child = spawn('unshare', [...namespaces, 'sh', '-c', script, 'sh', ...init], {
    stdio: ['ignore', 'inherit', 'inherit'],
  })
  const ended = once(child, 'exit').then(([code]: (number | null)[]) => code ?? null)
  const pid = await waitFor('PID 1', () => findInit(child, guest.program))

  const enter = ['-t', String(pid), '-m', '-p', `--wd=${guest.directory}`]
  const become = (user: User) => {
    const id = String(users[user])
    const environment = [`PATH=${guest.directory}:/usr/sbin:/usr/bin:/sbin:/bin`, 'TERM=dumb']
    const identity = ['setpriv', '--reuid', id, '--regid', id, '--clear-groups']
    return [...identity, 'env', '-i', ...environment]
  }
  return {
    pid,
    ended,
    as: (user, command, input) =>
      tryRun('nsenter', [...enter, ...become(user), ...command], {
        timeoutMs: 20_000,
        ...(input !== undefined && { input }),
      }),
    terminal: (user, shell) => openTerminal(enter, [...become(user), shell].join(' ')),
    async [Symbol.asyncDispose]() {
      child.kill('SIGKILL')
      await ended
    },
  }
}

/** A shell on a terminal. `shows` consumes the output in order. */
export interface Terminal extends Disposable {
  type(keys: string): void
  shows(pattern: RegExp): Promise<string>
}

function openTerminal(enter: readonly string[], command: string): Terminal {
  // The terminal must be created inside: job control needs a session leader with a pid in that namespace.
  const inside = [...enter, 'script', '-qec', command, '/dev/null']
  const child = spawn('nsenter', inside, { stdio: ['pipe', 'pipe', 'inherit'] })
  let shown = ''
  child.stdout.on('data', (chunk: Buffer) => (shown += chunk.toString('utf8')))
  return {
    type: (keys) => child.stdin.write(keys),
    async shows(pattern) {
      const match = await waitFor(
        `${pattern} on the terminal`,
        () => pattern.exec(shown) ?? false,
        {
          timeoutMs: 60_000,
        },
      ).catch((error: unknown) => {
        throw new Error(`not shown: ${pattern}, but: ${JSON.stringify(shown)}`, { cause: error })
      })
      shown = shown.slice(match.index + match[0].length)
      return match[1] ?? match[0]
    },
    [Symbol.dispose]: () => void child.kill('SIGKILL'),
  }
}

async function findInit(unshare: ChildProcess, program: string): Promise<number | undefined> {
  const path = `/proc/${unshare.pid}/task/${unshare.pid}/children`
  const pid = Number((await readFile(path, 'utf8').catch(() => '')).trim())
  if (!pid) return undefined
  const commandLine = await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')
  return commandLine.startsWith(program) ? pid : undefined
}

const passwdText = `root:x:0:0:root:/root:/bin/bash
this line is not an entry
user:x:61000:61000::/tmp:/bin/bash
other:x:61001:61001::/tmp:/bin/sh
member:x:61003:28::/tmp:/bin/sh
`
const groupText = `root:x:0:
sudo:x:27:somebody,user
wheel:x:28:
extra:x:29:other
user:x:61000:
other:x:61001:
`
