/**
 * Tests a runtime by running a program in it, in temporary namespaces and with a time limit: a hung platform must not
 * block the caller.
 */
import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { tryRun } from '@atoll/kit/run'

/** Undefined when the runtime works, otherwise the problem in one line. */
export type ProbeResult = Promise<string | undefined>

const limitMs = 10_000
const word = 'atoll-was-here'

export function probeGvisor(workDir = tmpdir(), runsc = 'runsc'): ProbeResult {
  return probe(workDir, runsc, ['--network=none', '--ignore-cgroups', '--platform=systrap'])
}

export function probeRunc(workDir = tmpdir()): ProbeResult {
  return probe(workDir, 'runc', [])
}

async function probe(workDir: string, program: string, flags: readonly string[]): ProbeResult {
  const dir = await mkdtemp(join(workDir, 'atoll-probe-'))
  try {
    await writeBundle(dir)
    const command = [program, '--root', join(dir, 'state'), ...flags, 'run', '--bundle', dir]
    const { code, stdout, stderr } = await tryRun(
      'unshare',
      [
        ...['--mount-proc', '--pid', '--fork', '--kill-child', 'sh', '-c', maskNetworkSettings],
        ...command,
        `atoll-probe-${process.pid}`,
      ],
      { timeoutMs: limitMs },
    )
    if (code === null) return `gave no answer within ${limitMs / 1000} s`
    if (code === 0 && stdout.includes(word)) return undefined
    return lastLine(stderr) ?? lastLine(stdout) ?? `exit ${code}`
  } catch (error) {
    return error instanceof Error ? error.message : String(error)
  } finally {
    await rm(dir, { recursive: true, force: true })
  }
}

/** Hides the network settings: some kernels show those of the root namespace everywhere, which misleads runsc. */
const maskNetworkSettings = 'mount -t tmpfs tmpfs /proc/sys/net && exec "$0" "$@"'

/** Writes a bundle whose root folder contains only the host's programs, read-only. */
async function writeBundle(dir: string): Promise<void> {
  const root = join(dir, 'rootfs')
  for (const folder of ['usr', 'proc', 'dev']) await mkdir(join(root, folder), { recursive: true })
  for (const name of ['bin', 'lib', 'lib64']) await symlink(`usr/${name}`, join(root, name))
  const bundle = {
    ociVersion: '1.0.2',
    root: { path: root, readonly: true },
    process: {
      user: { uid: 0, gid: 0 },
      cwd: '/',
      args: ['/bin/echo', word],
      env: ['PATH=/usr/bin'],
      noNewPrivileges: true,
    },
    mounts: [
      { destination: '/proc', type: 'proc', source: 'proc' },
      { destination: '/dev', type: 'tmpfs', source: 'tmpfs' },
      { destination: '/usr', type: 'bind', source: '/usr', options: ['rbind', 'ro'] },
    ],
    linux: {
      namespaces: ['pid', 'ipc', 'uts', 'mount', 'network'].map((type) => ({ type })),
    },
  }
  await writeFile(join(dir, 'config.json'), JSON.stringify(bundle))
}

function lastLine(text: string): string | undefined {
  return text.trim().split('\n').at(-1) || undefined
}
