/**
 * Hostile input to the envd of one sandbox: envd responds with the right result or an error, does not restart, and does
 * not keep memory. Runs on gVisor, where the memory of envd counts against the sandbox.
 */
import assert from 'node:assert/strict'
import { after, afterEach, before, test } from 'node:test'
import { gunzipSync, gzipSync } from 'node:zlib'
import { waitFor } from '@atoll/kit/wait'
import { envdHeaders, openProcess, outputOf, shell, startCloud } from '../http-cloud.ts'
import type { HttpCloud, HttpSandbox } from '../http-cloud.ts'
import { mutatedRequest, randomFrom } from '../mutations.ts'
import { endFlag, frame, framesOf, open, send } from '../wire.ts'
import type { Call } from '../wire.ts'

const polling = { intervalMs: 100 }
const mebibyte = 1024 * 1024

let cloud: HttpCloud
let url: string
let sandbox: HttpSandbox
let envdPid: string

before(async () => {
  // ext4 gives a disk of this size an inode per 4 KiB: enough for 100,000 files, and the disk is still quick to fill.
  cloud = await startCloud({ ATOLL_RUNTIME: 'gvisor', ATOLL_BASE_DISK_SIZE_MB: '400' })
  url = cloud.installation.url
  sandbox = await cloud.createSandbox()
  envdPid = (await run(findEnvdPid)).trim()
  await run(`mkdir /tmp/odd && cd /tmp/odd && echo content > file && mkfifo fifo &&
    ln -s two one && ln -s one two && ln -s . here && mkdir folder &&
    python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind("socket")'`)
})
after(() => cloud[Symbol.asyncDispose]())

afterEach(async () => {
  const headers = envdHeaders(sandbox)
  assert.equal((await send(url, { path: '/health', headers })).status, 204)
  assert.equal((await run(findEnvdPid)).trim(), envdPid, 'envd was restarted')
  // Node.js itself takes a third of this limit, a message up to 64 MiB, and freed memory is not returned at once. Ten
  // large messages in memory would take twice the limit.
  const kibibytes = Number((await run(`grep VmRSS /proc/${envdPid}/status`)).split(/\s+/)[1])
  assert.ok(kibibytes > 0 && kibibytes < 450 * 1024, `envd uses ${kibibytes} KiB of memory`)
})

const findEnvdPid = 'pgrep -P 1 -f envd.js'

async function run(script: string): Promise<string> {
  const stream = await openProcess(url, envdHeaders(sandbox), shell(script), { user: 'root' })
  return outputOf(await stream.readRemaining())
}

const python = (program: string) => run(`python3 -c '${program}' 2>&1`)

/** Calls a method of envd's filesystem service. Returns the response, with the status before an error. */
async function rpc(method: string, message: object): Promise<string> {
  const reply = await send(url, {
    method: 'POST',
    path: `/filesystem.Filesystem/${method}`,
    headers: { 'Content-Type': 'application/json', ...envdHeaders(sandbox) },
    body: JSON.stringify(message),
  })
  return reply.status === 200 ? reply.text : `${reply.status} ${reply.text}`
}

function files(path: string, call: Partial<Call> = {}) {
  const headers = { ...envdHeaders(sandbox), ...call.headers }
  return send(url, { ...call, path: `/files?path=${path}`, headers })
}

const upload = (path: string, body: string | Uint8Array, headers = {}) =>
  files(path, {
    method: 'POST',
    headers: { 'Content-Type': 'application/octet-stream', ...headers },
    body,
  })

test('invalid frames, and frames with a wrong length, end the stream with an error', async () => {
  const watch = frame('{"path":"/tmp"}')
  const select = frame('{"start":{"process":{"pid":1000000}}}')
  const bodies: [string, Buffer, RegExp][] = [
    [
      'filesystem.Filesystem/WatchDir',
      withLength(watch, 0xffff_ffff),
      /resource_exhausted.*larger/,
    ],
    ['filesystem.Filesystem/WatchDir', withLength(watch, 100), /invalid_argument.*incomplete/],
    ['filesystem.Filesystem/WatchDir', watch.subarray(0, 3), /invalid_argument.*incomplete/],
    ['filesystem.Filesystem/WatchDir', frame('{"path":1}'), /invalid_argument.*path/],
    ['filesystem.Filesystem/WatchDir', Buffer.concat([watch, watch]), /extra input/],
    ['filesystem.Filesystem/WatchDir', frame('\xff\xfe'), /invalid_argument.*decode/],
    ['process.Process/StreamInput', withLength(select, 0x8000_0000), /resource_exhausted.*larger/],
    ['process.Process/StreamInput', select.subarray(0, 9), /invalid_argument.*incomplete/],
    ['process.Process/StreamInput', select, /not_found/],
    ['process.Process/Connect', withLength(select, 4 * mebibyte), /invalid_argument.*incomplete/],
  ]
  for (const [method, body, problem] of bodies) {
    const headers = { 'Content-Type': 'application/connect+json', ...envdHeaders(sandbox) }
    const reply = await send(url, { method: 'POST', path: `/${method}`, headers, body })
    const frames = await Array.fromAsync(framesOf([reply.body]))
    assert.deepEqual([reply.status, frames.at(-1)?.flags], [200, endFlag])
    assert.match(frames.at(-1)?.payload.toString('utf8') ?? '', problem)
  }
})

/** Overwrites the length in the frame header. */
function withLength(original: Buffer, length: number): Buffer {
  const bytes = Buffer.from(original)
  bytes.writeUInt32BE(length, 1)
  return bytes
}

test('paths resolve as in the kernel, or fail', async () => {
  const long = `/tmp/${'x'.repeat(5000)}`
  const deep = `/tmp${'/y'.repeat(2500)}`
  const hostname = await run('cat /etc/hostname')
  for (const path of [
    '../../etc/hostname',
    '/tmp/../../../etc/hostname',
    '/tmp/odd/here/here/..//../etc/hostname',
  ]) {
    assert.equal((await files(path)).text, hostname)
    assert.match(await rpc('Stat', { path }), /"name":"hostname","type":"FILE_TYPE_FILE"/)
  }
  for (const method of ['Stat', 'ListDir', 'MakeDir', 'Remove', 'CreateWatcher']) {
    assert.match(await rpc(method, { path: '/tmp/\0' }), /^400 .*contains a NUL/, method)
    assert.match(
      await rpc(method, { path: long }),
      /^400 .*exceeds the maximum path length/,
      method,
    )
    assert.match(
      await rpc(method, { path: deep }),
      /^400 .*exceeds the maximum path length/,
      method,
    )
    assert.match(await rpc(method, { path: '\ud800' }), /^400 .*invalid UTF8/, method)
    assert.match(
      await rpc(method, { path: '~root/x' }),
      /^400 .*~ works only for your own home/,
      method,
    )
  }
  for (const [path, problem] of [
    ['/tmp/%00', /contains a NUL/],
    [long, /exceeds the maximum/],
    [deep, /exceeds the maximum/],
    ['%ff', /not valid percent-encoded UTF-8/],
    ['%', /not valid percent-encoded UTF-8/],
  ] as const) {
    for (const reply of [await files(path), await upload(path, 'x')]) {
      assert.equal(reply.status, 400)
      assert.match(reply.text, problem)
    }
  }
})

test('a symlink loop can be listed, but not followed', async () => {
  const path = '/tmp/odd/one'
  assert.match(await rpc('Stat', { path }), /"symlinkTarget":"\/tmp\/odd\/one"/)
  for (const method of ['ListDir', 'MakeDir']) {
    assert.match(await rpc(method, { path }), /failed_precondition.*symlink loop/)
    assert.match(await rpc(method, { path: `${path}/x` }), /failed_precondition.*symlink loop/)
  }
  assert.match(await rpc('CreateWatcher', { path }), /^500 .*ELOOP/)
  assert.equal((await files(path)).status, 500)
  assert.equal((await upload(path, 'x')).status, 500)
  // A link to its own folder would make the tree infinite, but inner links are not followed.
  const { entries } = JSON.parse(await rpc('ListDir', { path: '/tmp/odd', depth: 1000 }))
  assert.equal(entries.length, 7)
})

test('requests for special files fail and do not hang', async () => {
  for (const path of ['/tmp/odd/fifo', '/tmp/odd/socket', '/dev/zero', '/dev/tty', '/dev/pts']) {
    for (const reply of [await files(path), await upload(path, 'x')]) {
      assert.ok(reply.status === 400 || reply.status === 500, `${path}: ${reply.status}`)
      assert.match(reply.text, /is not a regular file|is a directory|: E[A-Z]+:/)
    }
  }
  assert.match((await files('/proc/self/mem')).text, /EIO/)
  assert.match((await files('/proc/version')).text, /^Linux version/)
})

test('file names that are not UTF-8 are listed with replacement characters, and can be removed', async () => {
  await python(`
import os
os.mkdir("/tmp/bytes"); os.chdir("/tmp/bytes")
for name in (b"bad\\xff\\xfe", b"\\xc3\\x28", b"new\\nline", b"plain"): open(name, "w").close()
os.mkdir(b"in\\xff"); open(b"in\\xff/side\\xfe", "w").close(); os.symlink(b"bad\\xff\\xfe", b"link\\x80")`)
  const { entries } = JSON.parse(await rpc('ListDir', { path: '/tmp/bytes', depth: 2 }))
  assert.deepEqual(
    entries.map(({ name }: { name: string }) => name),
    ['bad\ufffd\ufffd', 'in\ufffd', 'side\ufffd', 'link\ufffd', 'new\nline', 'plain', '\ufffd('],
  )
  assert.match(await rpc('Stat', { path: '/tmp/bytes/bad\ufffd\ufffd' }), /^404/)
  assert.equal(await rpc('Remove', { path: '/tmp/bytes' }), '{}')
  assert.equal(await run('test -e /tmp/bytes || echo gone'), 'gone\n')
})

test('folders nested deeper than the longest path are listed in part, and can be removed', async () => {
  await python(`
import os
os.chdir("/tmp")
for level in range(1500): os.mkdir("deep"); os.chdir("deep")
open("end", "w").close()`)
  const { entries } = JSON.parse(await rpc('ListDir', { path: '/tmp/deep', depth: 5000 }))
  assert.ok(entries.length > 500 && entries.length < 1000, String(entries.length))
  assert.equal(await rpc('Remove', { path: '/tmp/deep' }), '{}')
  assert.equal(await run('test -e /tmp/deep || echo gone'), 'gone\n')
})

// A million files would take a minute to create, and would test nothing more.
test('a folder of 100,000 files is too large to list, and can be watched and removed', async () => {
  const output = await python(`
import os
os.mkdir("/tmp/many"); os.chdir("/tmp/many")
for name in range(100000): os.close(os.open(str(name), os.O_CREAT | os.O_WRONLY))`)
  assert.equal(output, '')
  const path = '/tmp/many'
  const lists = await Promise.all(Array.from({ length: 5 }, () => rpc('ListDir', { path })))
  for (const list of lists) assert.match(list, /resource_exhausted.*more than 50000 entries/)
  assert.match(await rpc('ListDir', { path: '/tmp', depth: 2 }), /resource_exhausted/)
  const { watcherId } = JSON.parse(await rpc('CreateWatcher', { path, recursive: true }))
  assert.equal(await rpc('Remove', { path }), '{}')
  assert.match(await rpc('Stat', { path }), /^404/)
  // The queue of a watcher that is not read may overflow with so many changes.
  assert.match(await rpc('GetWatcherEvents', { watcherId }), /^500 .*changes|"events"/)
})

test('a download of a growing file has the length that the file had at the start', async () => {
  const append = 'until [ -e /tmp/enough ]; do head -c 100000 /dev/zero; done >> /tmp/grows'
  const grower = await openProcess(
    url,
    envdHeaders(sandbox),
    shell(`head -c 3000000 /dev/zero > /tmp/grows; echo begun; ${append}`),
  )
  await grower.readUntil(/begun/)
  const size = async () => Number(await run('stat -c %s /tmp/grows'))
  const waitForGrowth = async () => {
    const sizeBefore = await size()
    await waitFor('the file to grow', async () => (await size()) > sizeBefore, polling)
  }
  await waitForGrowth()
  const { status, headers, body } = await files('/tmp/grows')
  assert.deepEqual([status, headers['content-length']], [200, String(body.length)])
  assert.ok(body.length > 3_000_000 && body.length <= (await size()))
  const gzipReply = await files('/tmp/grows', { headers: { 'Accept-Encoding': 'gzip' } })
  assert.deepEqual([gzipReply.status, gzipReply.headers['content-encoding']], [200, 'gzip'])
  assert.ok(gunzipSync(gzipReply.body).length <= (await size()))
  await waitForGrowth()
  await run('touch /tmp/enough')
  await grower.readRemaining()
})

test('a watcher of a deleted folder gets events, and the watch continues', async () => {
  await run('mkdir -p /tmp/watched/inner')
  const response = await open(url, {
    method: 'POST',
    path: '/filesystem.Filesystem/WatchDir',
    headers: {
      'Content-Type': 'application/connect+json',
      'Keepalive-Ping-Interval': '1',
      'Connect-Timeout-Ms': '120000',
      ...envdHeaders(sandbox),
    },
    body: frame('{"path":"/tmp/watched","recursive":true,"includeEntry":true}'),
  })
  const frames = framesOf(response)
  const next = async () => (await frames.next()).value?.payload.toString('utf8')
  assert.equal(await next(), '{"start":{}}')
  await run('mv /tmp/watched /tmp/gone && rm -r /tmp/gone && mkdir -p /tmp/watched/inner')
  const messages: (string | undefined)[] = []
  while (messages.at(-1) !== '{"keepalive":{}}') messages.push(await next())
  const hasEvent = (name: string, type: string) =>
    messages.includes(`{"filesystem":{"name":"${name}","type":"EVENT_TYPE_${type}"}}`)
  assert.ok(
    hasEvent('.', 'RENAME') && hasEvent('inner', 'REMOVE') && hasEvent('.', 'REMOVE'),
    messages.join(),
  )
  response.destroy()
})

test('a gzip bomb of 1 GiB fills the disk, not the memory of envd', async () => {
  const bomb = Buffer.concat(
    Array.from({ length: 16 }, () => gzipSync(Buffer.alloc(64 * mebibyte))),
  )
  const reply = await upload('/tmp/bomb', bomb, { 'Content-Encoding': 'gzip' })
  assert.deepEqual([reply.status, /disk is full/.test(reply.text)], [507, true])
  assert.equal((await upload('/tmp/more', Buffer.alloc(mebibyte))).status, 507)
  await run('rm /tmp/bomb')
  assert.equal((await upload('/tmp/more', Buffer.alloc(mebibyte))).status, 200)
  const gzipHeaders = { 'Content-Type': 'application/json', 'Content-Encoding': 'gzip' }
  const replies = await Promise.all(
    Array.from({ length: 12 }, () =>
      send(url, {
        method: 'POST',
        path: '/filesystem.Filesystem/Stat',
        headers: { ...gzipHeaders, ...envdHeaders(sandbox) },
        body: bomb,
      }),
    ),
  )
  for (const { text } of replies) assert.match(text, /resource_exhausted.*after decompression/)
})

test('many concurrent large messages are refused rather than buffered', async () => {
  const stdin = Buffer.alloc(20 * mebibyte).toString('base64')
  const message = JSON.stringify({ process: { pid: 1_000_000 }, input: { stdin } })
  const headers = { 'Content-Type': 'application/json', ...envdHeaders(sandbox) }
  const expectations = [
    ['/process.Process/SendInput', /not_found|resource_exhausted.*too many are in progress/],
    ['/filesystem.Filesystem/Stat', /resource_exhausted.*too large/],
  ] as const
  for (const [path, answer] of expectations) {
    const calls = Array.from({ length: 10 }, () =>
      send(url, { method: 'POST', path, headers, body: message }),
    )
    for (const { text } of await Promise.all(calls)) assert.match(text, answer)
  }
})

const seed = 20_261_115

test(`500 mutated requests (seed ${seed}) all get a response`, async () => {
  await run('mkdir -p /tmp/fuzz && echo a > /tmp/fuzz/a')
  const random = randomFrom(seed)
  const calls = Array.from({ length: 500 }, () => mutatedRequest(random))
  const queue = calls.entries()
  const workers = Array.from({ length: 8 }, async () => {
    for (const [number, call] of queue) {
      const length = { 'Content-Length': String(call.body.length) }
      const headers = { ...envdHeaders(sandbox), ...length, ...call.headers }
      const label = `request ${number}: ${call.method} ${call.path.slice(0, 60)}`
      const status = await withinTime(label, send(url, { ...call, headers }))
      assert.ok(status >= 200 && status !== 502, `${label} is ${status}`)
    }
  })
  await Promise.all(workers)
})

/** Returns the status. Throws an error that names the request if there is no response in time. */
async function withinTime(label: string, reply: Promise<{ status: number }>): Promise<number> {
  const limit = Promise.withResolvers<never>()
  const timer = setTimeout(() => limit.reject(new Error(`${label} got no response`)), 120_000)
  try {
    return (await Promise.race([reply, limit.promise])).status
  } finally {
    clearTimeout(timer)
  }
}
