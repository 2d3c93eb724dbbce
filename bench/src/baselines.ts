/**
 * The runtimes by themselves: `runsc run` and `runc run` of one command on the layer of the base template. Everything
 * that can be made ahead is: only the runtime's own work, and entering the mount namespace, is in the time.
 *
 * All mounts are in a mount namespace that lives as long as a process waiting for our end of a pipe to close. So
 * nothing is left on the machine however the benchmark ends.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { layersDir } from '@atoll/system-tests/installation'

export type RuntimeName = 'gvisor' | 'runc'

export interface Baselines extends AsyncDisposable {
  /** Milliseconds from the start of the runtime to the first byte that `args` printed. */
  firstByte(runtime: RuntimeName, args: readonly string[]): Promise<number>
}

export async function prepareBaselines(): Promise<Baselines> {
  const dir = await mkdtemp('/var/tmp/atoll-bench-')
  try {
    return await openBaselines(dir)
  } catch (error) {
    await rm(dir, { recursive: true, force: true })
    throw error
  }
}

async function openBaselines(dir: string): Promise<Baselines> {
  const holder = spawn(
    'unshare',
    ['--mount', '--propagation', 'private', 'sh', '-euc', prepare, 'x', dir, await baseLayer()],
    {
      stdio: ['pipe', 'pipe', 'inherit'],
    },
  )
  const closed = once(holder, 'close')
  await Promise.race([once(holder.stdout, 'data'), closed.then(() => fail('mounting failed'))])
  let runs = 0

  return {
    async firstByte(runtime, args) {
      const id = `bench${process.pid}x${(runs += 1)}`
      const enter = ['-t', String(holder.pid), '--mount', 'sh', '-euc', start, 'x', dir, id]
      const began = performance.now()
      const child = spawn('nsenter', [...enter, bundle(dir, args), ...commands[runtime]], {
        stdio: ['ignore', 'pipe', 'inherit'],
      })
      const ended = once(child, 'close')
      await Promise.race([
        once(child.stdout, 'data'),
        ended.then(([code]) => fail(`${runtime} printed nothing and ended with ${code}`)),
      ])
      const elapsed = performance.now() - began
      const [code] = await ended
      if (code !== 0) fail(`${runtime} ended with ${code}`)
      return elapsed
    },
    async [Symbol.asyncDispose]() {
      holder.stdin.end()
      await closed
      await rm(dir, { recursive: true, force: true })
    },
  }
}

/** The same flags as in a sandbox of Atoll. */
const commands: Readonly<Record<RuntimeName, readonly string[]>> = {
  gvisor: ['runsc', '--platform=systrap', '--network=sandbox', '--net-raw', '--overlay2=none'],
  runc: ['runc'],
}

/** runsc takes a network namespace for the root one unless `/proc/sys/net` is empty; see docs/decisions. */
const prepare = `
cd "$1"
mount -t tmpfs -o ro tmpfs /proc/sys/net
mount -t tmpfs tmpfs .
cd "$1"
mkdir upper work rootfs bundle state
mount -t overlay -o "lowerdir=$2,upperdir=upper,workdir=work" overlay rootfs
echo ready
exec cat
`

const start = `
dir=$1 id=$2 config=$3
shift 3
printf '%s' "$config" > "$dir/bundle/config.json"
exec "$@" --root="$dir/state" run --bundle "$dir/bundle" "$id"
`

function bundle(dir: string, args: readonly string[]): string {
  const namespaces = ['pid', 'ipc', 'uts', 'mount', 'network'].map((type) => ({ type }))
  return JSON.stringify({
    ociVersion: '1.0.2',
    root: { path: join(dir, 'rootfs') },
    process: { user: { uid: 0, gid: 0 }, cwd: '/', args, env: ['PATH=/usr/bin:/bin'] },
    mounts: [
      { destination: '/proc', type: 'proc', source: 'proc' },
      { destination: '/dev', type: 'tmpfs', source: 'tmpfs' },
    ],
    linux: { namespaces },
  })
}

async function baseLayer(): Promise<string> {
  const { layer }: { layer: string } = JSON.parse(
    await readFile(join(layersDir, 'base.json'), 'utf8'),
  )
  return join(layersDir, layer)
}

function fail(message: string): never {
  throw new Error(message)
}
