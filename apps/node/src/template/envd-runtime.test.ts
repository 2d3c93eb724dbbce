import assert from 'node:assert/strict'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { run, tryRun } from '@atoll/kit/run'
import { parseLdd } from './envd-build.ts'
import { sourceKey } from './envd-key.ts'
import { ensureEnvdRuntime } from './envd-runtime.ts'

async function createTempDir() {
  const dir = await mkdtemp(join(tmpdir(), 'atoll-envd-runtime-'))
  return { dir, [Symbol.asyncDispose]: () => rm(dir, { recursive: true }) }
}

/** Script that runs the files of `$0` as `/.atoll` in the otherwise empty root folder `$1`, then the program `$2`. */
const runInEmptyRoot = `set -eu
ip link set lo up
mount -t tmpfs tmpfs "$1"
mkdir "$1/.atoll" "$1/proc"
mount --bind "$0" "$1/.atoll"
mount -t proc proc "$1/proc"
node() { chroot "$1" /.atoll/lib/ld.so --library-path /.atoll/lib /.atoll/node "$2" "$3"; }
ATOLL_PTY_ADDON=/.atoll/pty.node node "$1" --no-deprecation /.atoll/envd.js &
node "$1" -e "$2"
chroot "$1" /.atoll/guest || echo "guest: $?"
chroot "$1" /.atoll/sudo --version || echo "sudo: $?"`

/** Program that loads the native addons, then polls envd until it responds. */
const checkEnvd = `
require('/.atoll/pty.node')
require('/.atoll/koffi.node').load('libc.so.6').func('int getpid()')()
const ask = () => fetch('http://127.0.0.1:49983/health').then(
  (reply) => console.log('health', reply.status),
  () => setTimeout(ask, 20),
)
ask()`

test('envd, its addons and the guest program run in an otherwise empty root', async () => {
  await using temp = await createTempDir()
  const { dir, version } = await ensureEnvdRuntime({ dir: join(temp.dir, 'envd') })
  assert.match(version, /^\d+\.\d+\.\d+$/)
  const root = join(temp.dir, 'root')
  await mkdir(root)
  const namespaces = ['--net', '--mount', '--pid', '--fork', '--kill-child']
  const { stdout, stderr } = await tryRun(
    'unshare',
    [...namespaces, 'sh', '-c', runInEmptyRoot, dir, root, checkEnvd],
    { timeoutMs: 30_000 },
  )
  assert.match(stdout, /^health 20\d$/m, stderr)
  // Exit codes 127 and 126 mean that the program is missing or not executable.
  assert.doesNotMatch(stdout, /(guest|sudo): 12[67]/)
  const again = await ensureEnvdRuntime({ dir: join(temp.dir, 'envd') })
  assert.equal(again.dir, dir)
})

test('two concurrent builds return the same folder', async () => {
  await using temp = await createTempDir()
  const both = await Promise.all([temp, temp].map(ensureEnvdRuntime))
  assert.equal(both[0]?.dir, both[1]?.dir)
})

test('the source key changes with a source file and the Node.js version, not with a test', async () => {
  await using temp = await createTempDir()
  await mkdir(join(temp.dir, 'apps/envd/src'), { recursive: true })
  const write = (name: string, text: string) =>
    writeFile(join(temp.dir, 'apps/envd/src', name), text)
  await write('main.ts', 'one')
  const first = await sourceKey(temp.dir, 'v24.0.0')
  assert.match(first, /^[0-9a-f]{16}$/)
  await write('main.test.ts', 'a test')
  assert.equal(await sourceKey(temp.dir, 'v24.0.0'), first)
  assert.notEqual(await sourceKey(temp.dir, 'v24.0.1'), first)
  await write('main.ts', 'two')
  assert.notEqual(await sourceKey(temp.dir, 'v24.0.0'), first)
})

test('parseLdd returns the paths of the loader and the libraries', async () => {
  const listing = `\tlinux-vdso.so.1 (0x00007ffb2061e000)
\tlibm.so.6 => /lib/x86_64-linux-gnu/libm.so.6 (0x00007ffb20528000)
\t/lib64/ld-linux-x86-64.so.2 (0x00007ffb20620000)
`
  const expected = ['/lib/x86_64-linux-gnu/libm.so.6', '/lib64/ld-linux-x86-64.so.2']
  assert.deepEqual(parseLdd(listing), expected)
  assert.ok(parseLdd(await run('ldd', [process.execPath])).length > 4)
})
