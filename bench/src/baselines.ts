/**
 * Bare runtimes as baselines: `runsc run` and `runc run` of one command on the layer of the base template, and `exec`
 * in a running sandbox. The measured time includes only the runtime and entering the mount namespace.
 *
 * A process that waits for our end of a pipe holds the mount namespace, so that no mount outlives the benchmark.
 */
import { spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { layersDir } from '@atoll/system-tests/installation'

export type RuntimeName = 'gvisor' | 'runc'

export interface Baselines extends AsyncDisposable {
  /** Returns milliseconds from the start of the runtime to the first byte of output. */
  firstByte(runtime: RuntimeName, args: readonly string[]): Promise<number>
  /** Runs a command, and throws if it fails. */
  run(runtime: RuntimeName, args: readonly string[]): Promise<void>
  /** Starts an idle sandbox without Atoll. */
  startBare(runtime: RuntimeName): Promise<BareSandbox>
}

export interface BareSandbox extends AsyncDisposable {
  /** Relative to the root of each hierarchy. */
  readonly cgroup: string
  /** Runs a command, and throws if it fails. */
  exec(args: readonly string[]): Promise<void>
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
  const namespaceHolder = spawn(
    'unshare',
    ['--mount', '--propagation', 'private', 'sh', '-euc', prepare, 'x', dir, await baseLayer()],
    {
      stdio: ['pipe', 'pipe', 'inherit'],
    },
  )
  const closed = once(namespaceHolder, 'close')
  await Promise.race([
    once(namespaceHolder.stdout, 'data'),
    closed.then(() => fail('Cannot mount the base layer for the baselines')),
  ])
  let runs = 0
  const newId = () => `bench${process.pid}x${(runs += 1)}`
  const enter: EnterNamespace = (script, args, stdin) =>
    spawn(
      'nsenter',
      ['-t', String(namespaceHolder.pid), '--mount', 'sh', '-euc', script, 'x', ...args],
      {
        stdio: [stdin, 'pipe', 'inherit'],
      },
    )

  return {
    async firstByte(runtime, args) {
      const began = performance.now()
      const flags = [dir, newId(), bundle(dir, { args }), ...commands[runtime]]
      const child = enter(start, flags, 'ignore')
      const ended = waitForSuccess(child, runtime)
      await waitForOutput(child, ended)
      const elapsed = performance.now() - began
      await ended
      return elapsed
    },
    async run(runtime, args) {
      const flags = [dir, newId(), bundle(dir, { args }), ...commands[runtime]]
      const child = enter(start, flags, 'ignore')
      child.stdout?.resume()
      await waitForSuccess(child, runtime)
    },
    startBare: (runtime) => startBareSandbox(dir, newId(), runtime, enter),
    async [Symbol.asyncDispose]() {
      namespaceHolder.stdin.end()
      await closed
      await rm(dir, { recursive: true, force: true })
    },
  }
}

/** Starts a shell script in the mount namespace of the baselines. */
type EnterNamespace = (
  script: string,
  args: readonly string[],
  stdin: 'ignore' | 'pipe',
) => ChildProcess

async function startBareSandbox(
  dir: string,
  id: string,
  runtime: RuntimeName,
  enter: EnterNamespace,
): Promise<BareSandbox> {
  const cgroup = `/atoll-${id}`
  // `cat` waits for our end of the pipe to close, so the sandbox ends with the benchmark.
  const args = ['/bin/sh', '-c', 'echo there; exec cat']
  const config = bundle(dir, { args, cgroup })
  const child = enter(start, [dir, id, config, ...commands[runtime]], 'pipe')
  const ended = waitForSuccess(child, runtime)
  await waitForOutput(child, ended)
  return {
    cgroup,
    async exec(command) {
      const program = [...commands[runtime], `--root=${dir}/state`, 'exec', id, ...command]
      const run = enter('exec "$@"', program, 'ignore')
      run.stdout?.resume()
      await waitForSuccess(run, `${runtime} exec`)
    },
    async [Symbol.asyncDispose]() {
      child.stdin?.end()
      await ended
    },
  }
}

/** The flags that Atoll uses. */
const commands: Readonly<Record<RuntimeName, readonly string[]>> = {
  gvisor: ['runsc', '--platform=systrap', '--network=sandbox', '--net-raw', '--overlay2=none'],
  runc: ['runc'],
}

/** runsc mistakes every network namespace for the root one unless `/proc/sys/net` is empty; see docs/decisions. */
const prepare = `
cd "$1"
mount -t tmpfs -o ro tmpfs /proc/sys/net
mount -t tmpfs tmpfs .
cd "$1"
mkdir upper work rootfs state
mount -t overlay -o "lowerdir=$2,upperdir=upper,workdir=work" overlay rootfs
echo ready
exec cat
`

const start = `
dir=$1 id=$2 config=$3
shift 3
mkdir "$dir/$id"
printf '%s' "$config" > "$dir/$id/config.json"
exec "$@" --root="$dir/state" run --bundle "$dir/$id" "$id"
`

function bundle(
  dir: string,
  { args, cgroup }: { readonly args: readonly string[]; readonly cgroup?: string },
): string {
  const namespaces = ['pid', 'ipc', 'uts', 'mount', 'network'].map((type) => ({ type }))
  return JSON.stringify({
    ociVersion: '1.0.2',
    root: { path: join(dir, 'rootfs') },
    process: { user: { uid: 0, gid: 0 }, cwd: '/', args, env: ['PATH=/usr/bin:/bin'] },
    mounts: [
      { destination: '/proc', type: 'proc', source: 'proc' },
      { destination: '/dev', type: 'tmpfs', source: 'tmpfs' },
    ],
    linux: { namespaces, ...(cgroup !== undefined && { cgroupsPath: cgroup }) },
  })
}

async function baseLayer(): Promise<string> {
  const records = (await readdir(layersDir)).filter((name) => /^base-[0-9a-f]+\.json$/.test(name))
  const contents = await Promise.all(records.map((name) => readFile(join(layersDir, name), 'utf8')))
  const built: { layer: string; createdAt: string }[] = contents.map((text) => JSON.parse(text))
  const newest = built.toSorted((a, b) => (a.createdAt < b.createdAt ? 1 : -1))[0]
  return join(layersDir, newest?.layer ?? fail(`There is no base template in ${layersDir}`))
}

async function waitForOutput(child: ChildProcess, ended: Promise<void>): Promise<void> {
  const stdout = child.stdout ?? fail('stdout is not a pipe')
  await Promise.race([
    once(stdout, 'data'),
    ended.then(() => fail('The runtime exited without output')),
  ])
}

async function waitForSuccess(child: ChildProcess, what: string): Promise<void> {
  const [code] = await once(child, 'close')
  if (code !== 0) fail(`${what} failed with exit code ${code}`)
}

function fail(message: string): never {
  throw new Error(message)
}
