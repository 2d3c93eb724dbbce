/**
 * Published clients compare the envd version of a sandbox with version gates, and use more features from certain
 * versions on. The version of Atoll must pass every gate, and the feature behind each gate must work. Each feature is
 * tried once here; the test files named beside it test it thoroughly. Gates between a platform and its own envd have no
 * probe: in Atoll both have the same source.
 */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { waitFor } from '@atoll/kit/wait'
import { Sandbox } from 'e2b'
import { envdHeaders, startCloud } from '../http-cloud.ts'
import type { HttpCloud, HttpSandbox } from '../http-cloud.ts'
import { send } from '../wire.ts'

let cloud: HttpCloud
let httpSandbox: HttpSandbox & { readonly envdVersion?: string }
let sandbox: Sandbox

before(async () => {
  cloud = await startCloud({ ATOLL_RUNTIME: 'gvisor' })
  httpSandbox = await cloud.createSandbox({ secure: true })
  sandbox = await Sandbox.connect(httpSandbox.sandboxID, cloud.installation.connection)
})
after(() => cloud[Symbol.asyncDispose]())

const gates: readonly [string, string, (() => Promise<unknown>)?][] = [
  ['0.1.0', 'a sandbox at all: sdk', async () => assert.ok(await sandbox.isRunning())],
  ['0.1.4', 'recursive watch: filesystem', () => checkWatch('deep/inner', { recursive: true })],
  ['0.1.5', 'metrics: files', async () => assert.ok((await metrics())['cpu_count'])],
  ['0.2.0', 'secured sandboxes: wire, files', checkToken],
  ['0.2.4', 'metrics of the disk, memory in bytes: files', checkMetricUnits],
  ['0.3.0', 'stdin: false: wire, streaming', checkNoStdin],
  ['0.4.0', 'a default user of the server: sdk', checkDefaultUser],
  ['0.5.0', 'snapshots, by the server'],
  ['0.5.2', 'CloseStdin: wire', checkCloseStdin],
  ['0.5.7', 'octet-stream and gzip uploads: files', checkUploads],
  ['0.5.9', 'memory of caches', async () => assert.ok('mem_cache' in (await metrics()))],
  ['0.5.13', 'network rules, by the server'],
  ['0.5.14', 'volumes, by the server'],
  ['0.6.2', 'metadata of files: filesystem', checkMetadata],
  ['0.6.3', 'entries in changes: filesystem', () => checkWatch('shown', { includeEntry: true })],
  [
    '0.6.4',
    'network mounts: watch of envd',
    () => checkWatch('mounts', { allowNetworkMounts: true }),
  ],
  ['0.6.5', 'heap collapse, by the server'],
  ['0.6.6', 'freezing of file systems, by the server'],
  ['0.6.12', 'live upgrade, by the server'],
]

for (const [version, promise, probe] of gates) {
  test(`the version is at least ${version} (${promise})`, async () => {
    assert.ok(isAtLeast(httpSandbox.envdVersion ?? '', version), httpSandbox.envdVersion)
    await probe?.()
  })
}

function isAtLeast(version: string, gate: string): boolean {
  const [actual, minimum] = [version, gate].map((text) => text.split('.').map(Number))
  assert.ok(actual?.length === 3 && minimum?.length === 3)
  const position = actual.findIndex((part, index) => part !== minimum[index])
  return position < 0 || (actual[position] ?? 0) > (minimum[position] ?? 0)
}

async function checkWatch(
  folder: string,
  options: { recursive?: boolean; includeEntry?: boolean; allowNetworkMounts?: boolean },
): Promise<void> {
  const [top = ''] = folder.split('/')
  await sandbox.files.makeDir(folder)
  const sizes: (number | undefined)[] = []
  const handle = await sandbox.files.watchDir(
    top,
    ({ name, entry }) => {
      if (name.endsWith('new')) sizes.push(entry?.size)
    },
    options,
  )
  await sandbox.files.write(`${folder}/new`, '12345')
  const hasEvent = () => (options.includeEntry ? sizes.includes(5) : sizes.length > 0)
  await waitFor('the change', hasEvent)
  await handle.stop()
}

async function metrics(headers = envdHeaders(httpSandbox)): Promise<Record<string, number>> {
  const { status, text } = await send(cloud.installation.url, { path: '/metrics', headers })
  assert.equal(status, 200, text)
  return JSON.parse(text)
}

async function checkToken(): Promise<void> {
  const { 'X-Access-Token': token, ...headers } = envdHeaders(httpSandbox)
  assert.ok(token)
  await assert.rejects(metrics(headers), /access token/)
}

async function checkMetricUnits(): Promise<void> {
  const { disk_total: disk = 0, disk_used: used = 0, mem_used: memory = 0 } = await metrics()
  assert.ok(disk > used && used > 0 && memory > 1024 * 1024)
}

async function checkNoStdin(): Promise<void> {
  const { stdout } = await sandbox.commands.run('readlink /proc/self/fd/0; cat', { stdin: false })
  assert.equal(stdout, '/dev/null\n')
}

async function checkDefaultUser(): Promise<void> {
  assert.equal((await sandbox.commands.run('id -un')).stdout, 'user\n')
}

async function checkCloseStdin(): Promise<void> {
  const handle = await sandbox.commands.run('cat', { background: true, timeoutMs: 0, stdin: true })
  await handle.sendStdin('all')
  await handle.closeStdin()
  assert.equal((await handle.wait()).stdout, 'all')
}

async function checkUploads(): Promise<void> {
  await sandbox.files.write('octets', 'octets', { useOctetStream: true })
  await sandbox.files.write('packed', 'packed', { gzip: true })
  assert.equal((await sandbox.commands.run('cat octets packed')).stdout, 'octetspacked')
}

async function checkMetadata(): Promise<void> {
  await sandbox.files.write('tagged', 'x', { metadata: { a: '1' } })
  assert.deepEqual((await sandbox.files.getInfo('tagged')).metadata, { a: '1' })
}
