/** Tests that envd loads and allocates nothing needless, which every sandbox would pay for. Runs the real bundle. */
import assert from 'node:assert/strict'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { envdNodeFlags } from '@atoll/envd/node-flags'
import { run } from '@atoll/kit/run'
import { ensureEnvdRuntime } from './envd-runtime.ts'

const folder = await mkdtemp(join(tmpdir(), 'atoll-envd-memory-'))
after(() => rm(folder, { recursive: true }))

const { dir } = await ensureEnvdRuntime({ dir: join(folder, 'envd') })

/**
 * Script that runs the files of `$0` as `/.atoll` in the root folder `$1`: envd with the flags from `$3` on, and beside
 * it the program `$2`.
 */
const runInRoot = `set -eu
files=$0 root=$1 program=$2
shift 2
ip link set lo up
hostname sandbox
mkdir "$root/.atoll" "$root/proc" "$root/dev"
mount --bind /dev "$root/dev"
mount --bind "$files" "$root/.atoll"
mount -t proc proc "$root/proc"
(export ATOLL_INIT_TOKEN=token ATOLL_PTY_ADDON=/.atoll/pty.node ATOLL_LIBC_ADDON=/.atoll/koffi.node
exec chroot "$root" /.atoll/lib/ld.so --library-path /.atoll/lib --preload /.atoll/lib/node-memory.so /.atoll/node \\
  "$@" --require /report.js /.atoll/envd.js) &
chroot "$root" /.atoll/lib/ld.so --library-path /.atoll/lib /.atoll/node -e "$program"
kill -TERM $!
wait $!`

const report = `process.on('exit', () => console.log('loaded', JSON.stringify(process.moduleLoadList)))`

/** Calls each kind of operation, and prints the statuses. */
const callEnvd = `
const until = async (call) => { for (;;) try { return await call() } catch { await new Promise((next) => setTimeout(next, 20)) } }
const call = (path, body, type = 'application/json') => {
  const headers = { 'x-init-token': 'token', authorization: 'Basic ' + btoa('root:'), 'content-type': type, 'connect-protocol-version': '1' }
  return fetch('http://127.0.0.1:49983' + path, { method: body === undefined ? 'GET' : 'POST', headers, body })
}
const unary = (path, message) => call(path, JSON.stringify(message))
const frame = (message) => {
  const text = Buffer.from(JSON.stringify(message))
  const head = Buffer.alloc(5)
  head.writeUInt32BE(text.length, 1)
  return Buffer.concat([head, text])
}
const stream = (path, message) => call(path, frame(message), 'application/connect+json')
const status = async (name, response) => {
  const { status } = await response
  await (await response).arrayBuffer()
  console.log(name, status)
}
;(async () => {
  await until(() => call('/health'))
  await status('prepare', call('/prepare', ''))
  await status('init', call('/init', '{}'))
  await status('stat', unary('/filesystem.Filesystem/Stat', { path: '/proc' }))
  await status('stat of nothing', unary('/filesystem.Filesystem/Stat', { path: '/absent' }))
  await status('binary list', call('/process.Process/List', '', 'application/proto'))
  await status('start', stream('/process.Process/Start', { process: { cmd: '/.atoll/guest', cwd: '/' } }))
  await status('connect', stream('/process.Process/Connect', { process: { pid: 999999 } }))
  await status('input', stream('/process.Process/StreamInput', { start: { process: { pid: 999999 } } }))
  const watch = await stream('/filesystem.Filesystem/WatchDir', { path: '/etc' })
  const reader = watch.body.getReader()
  await reader.read()
  await reader.cancel()
  console.log('watch', watch.status)
  await status('upload', call('/files?username=root&path=/file', 'content', 'application/octet-stream'))
  await status('download', call('/files?username=root&path=/file'))
  await status('metrics', call('/metrics'))
})()`

test('envd serves every kind of call without the HTTP client of Node.js', async () => {
  const root = join(folder, 'root')
  await mkdir(join(root, 'etc'), { recursive: true })
  const files = {
    'etc/passwd': 'root:x:0:0:root:/:/bin/sh\n',
    'etc/group': 'root:x:0:\n',
    'etc/hosts': '127.0.0.1 localhost\n',
    'etc/hostname': 'sandbox\n',
    'report.js': report,
  }
  for (const [name, text] of Object.entries(files)) await writeFile(join(root, name), text)
  const namespaces = ['--net', '--mount', '--pid', '--uts', '--fork', '--kill-child']
  const parameters = [dir, root, callEnvd, ...envdNodeFlags]
  const output = await run('unshare', [...namespaces, 'sh', '-c', runInRoot, ...parameters], {
    timeoutMs: 600_000,
  })
  const lines = output.trim().split('\n')
  assert.deepEqual(lines.slice(0, -1), [
    'prepare 204',
    'init 204',
    'stat 200',
    'stat of nothing 404',
    'binary list 200',
    'start 200',
    'connect 200',
    'input 200',
    'watch 200',
    'upload 200',
    'download 200',
    'metrics 200',
  ])
  const loaded: string[] = JSON.parse(lines.at(-1)?.replace('loaded ', '') ?? '')
  assert.ok(loaded.includes('NativeModule http'), 'the list has the modules that are loaded')
  assert.deepEqual(
    loaded.filter((name) => /undici|webstreams|webcrypto/.test(name)),
    [],
  )
})

/** Prints the memory that is not backed by files. */
const printAnonymousKb = `
const text = require('node:fs').readFileSync('/proc/self/smaps_rollup', 'utf8')
console.log(/^Anonymous:\\s+(\\d+)/m.exec(text)[1])`

test('the preloaded library spares the table of the deadlock detection', async () => {
  const lib = join(dir, 'lib')
  const anonymousKb = async (...preload: string[]) => {
    const args = ['--library-path', lib, ...preload, join(dir, 'node'), '-e', printAnonymousKb]
    return Number(await run(join(lib, 'ld.so'), args))
  }
  const [plain, preloaded] = [
    await anonymousKb(),
    await anonymousKb('--preload', join(lib, 'node-memory.so')),
  ]
  assert.ok(plain - preloaded > 700, `${plain} KB without the library, ${preloaded} KB with it`)
})
