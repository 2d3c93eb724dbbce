/**
 * Published clients compare the version that a sandbox reports, and do more from certain versions on. Ours has to be at
 * or above all of them, and what each promises has to work. Here each is tried once; the files named beside it try it
 * thoroughly. Gates between a platform and its own daemon have no probe: ours come from one source.
 */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { waitFor } from '@atoll/kit/wait'
import { Sandbox } from 'e2b'
import { envdHeaders, startCloud } from '../http-cloud.ts'
import type { HttpCloud, HttpSandbox } from '../http-cloud.ts'
import { send } from '../wire.ts'

let cloud: HttpCloud
let byHand: HttpSandbox & { readonly envdVersion?: string }
let sandbox: Sandbox

before(async () => {
  cloud = await startCloud({ ATOLL_RUNTIME: 'gvisor' })
  byHand = await cloud.createSandbox({ secure: true })
  sandbox = await Sandbox.connect(byHand.sandboxID, cloud.installation.connection)
})
after(() => cloud[Symbol.asyncDispose]())

const gates: readonly [string, string, (() => Promise<unknown>)?][] = [
  ['0.1.0', 'a sandbox at all: sdk', async () => assert.ok(await sandbox.isRunning())],
  ['0.1.4', 'recursive watch: filesystem', () => seesChange('deep/inner', { recursive: true })],
  ['0.1.5', 'metrics: files', async () => assert.ok((await metrics())['cpu_count'])],
  ['0.2.0', 'secured sandboxes: wire, files', isSecured],
  ['0.2.4', 'metrics of the disk, memory in bytes: files', measuresBytes],
  ['0.3.0', 'stdin: false: wire, streaming', hasNoInput],
  ['0.4.0', 'a default user of the server: sdk', runsAsUser],
  ['0.5.0', 'snapshots, by the server'],
  ['0.5.2', 'CloseStdin: wire', closesInput],
  ['0.5.7', 'octet-stream and gzip uploads: files', takesPacked],
  ['0.5.9', 'memory of caches', async () => assert.ok('mem_cache' in (await metrics()))],
  ['0.5.13', 'network rules, by the server'],
  ['0.5.14', 'volumes, by the server'],
  ['0.6.2', 'metadata of files: filesystem', keepsMetadata],
  ['0.6.3', 'entries in changes: filesystem', () => seesChange('shown', { includeEntry: true })],
  [
    '0.6.4',
    'network mounts: watch of envd',
    () => seesChange('mounts', { allowNetworkMounts: true }),
  ],
  ['0.6.5', 'heap collapse, by the server'],
  ['0.6.6', 'freezing of file systems, by the server'],
  ['0.6.12', 'live upgrade, by the server'],
]

for (const [version, promise, probe] of gates) {
  test(`the version is at least ${version} (${promise})`, async () => {
    assert.ok(isAtLeast(byHand.envdVersion ?? '', version), byHand.envdVersion)
    await probe?.()
  })
}

function isAtLeast(version: string, gate: string): boolean {
  const [have, want] = [version, gate].map((text) => text.split('.').map(Number))
  assert.ok(have?.length === 3 && want?.length === 3)
  const different = have.findIndex((part, at) => part !== want[at])
  return different < 0 || (have[different] ?? 0) > (want[different] ?? 0)
}

async function seesChange(
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
  const isSeen = () => (options.includeEntry ? sizes.includes(5) : sizes.length > 0)
  await waitFor('the change', isSeen)
  await handle.stop()
}

async function metrics(headers = envdHeaders(byHand)): Promise<Record<string, number>> {
  const { status, text } = await send(cloud.installation.url, { path: '/metrics', headers })
  assert.equal(status, 200, text)
  return JSON.parse(text)
}

async function isSecured(): Promise<void> {
  const { 'X-Access-Token': token, ...headers } = envdHeaders(byHand)
  assert.ok(token)
  await assert.rejects(metrics(headers), /access token/)
}

async function measuresBytes(): Promise<void> {
  const { disk_total: disk = 0, disk_used: used = 0, mem_used: memory = 0 } = await metrics()
  assert.ok(disk > used && used > 0 && memory > 1024 * 1024)
}

async function hasNoInput(): Promise<void> {
  const { stdout } = await sandbox.commands.run('readlink /proc/self/fd/0; cat', { stdin: false })
  assert.equal(stdout, '/dev/null\n')
}

async function runsAsUser(): Promise<void> {
  assert.equal((await sandbox.commands.run('id -un')).stdout, 'user\n')
}

async function closesInput(): Promise<void> {
  const handle = await sandbox.commands.run('cat', { background: true, stdin: true })
  await handle.sendStdin('all')
  await handle.closeStdin()
  assert.equal((await handle.wait()).stdout, 'all')
}

async function takesPacked(): Promise<void> {
  await sandbox.files.write('octets', 'octets', { useOctetStream: true })
  await sandbox.files.write('packed', 'packed', { gzip: true })
  assert.equal((await sandbox.commands.run('cat octets packed')).stdout, 'octetspacked')
}

async function keepsMetadata(): Promise<void> {
  await sandbox.files.write('tagged', 'x', { metadata: { a: '1' } })
  assert.deepEqual((await sandbox.files.getInfo('tagged')).metadata, { a: '1' })
}
