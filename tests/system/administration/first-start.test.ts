/** Output of Atoll at its first start, at a second start, and at its end. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm, stat } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { run, tryRun } from '@atoll/kit/run'
import { freePort } from '@atoll/kit/testing/free-port'
import { waitFor } from '@atoll/kit/wait'
import { Sandbox } from 'e2b'
import { atoll, install } from '../installation.ts'
import type { Installation } from '../installation.ts'

const polling = { intervalMs: 20 }
const readyLine = 'Ctrl-C ends the server and leaves sandboxes running.'

let installation: Installation

before(async () => {
  installation = await install()
})
after(() => installation[Symbol.asyncDispose]())

test('the first start prints both URLs, the key, the token and the settings for the SDK', async () => {
  const { url, apiKey, accessToken } = installation
  await waitFor('the banner', () => installation.output().includes(readyLine), polling)
  const banner = installation.output()
  assert.match(banner, new RegExp(`API +${url}\n +Sandboxes +${url}\n`))
  assert.match(banner, new RegExp(`API key +${apiKey}\n +Access token +${accessToken}\n`))
  assert.match(apiKey, /^e2b_[0-9a-f]{40}$/)
  assert.match(accessToken, /^sk_e2b_[0-9a-f]{40}$/)
  assert.deepEqual(exportsOf(banner), {
    E2B_API_URL: url,
    E2B_SANDBOX_URL: url,
    E2B_DOMAIN: `localhost:${new URL(url).port}`,
    E2B_API_KEY: apiKey,
  })
})

test('the SDK needs only the settings that the server prints', async () => {
  const { E2B_API_URL, E2B_SANDBOX_URL, E2B_API_KEY } = exportsOf(installation.output())
  assert.ok(E2B_API_URL && E2B_SANDBOX_URL && E2B_API_KEY)
  const connection = { apiUrl: E2B_API_URL, sandboxUrl: E2B_SANDBOX_URL, apiKey: E2B_API_KEY }
  const sandbox = await Sandbox.create(connection)
  assert.equal((await sandbox.commands.run('echo works')).stdout, 'works\n')
  await sandbox.kill()
})

test('only the credentials file holds the key and the token, and only root reads it', async () => {
  const { dataDir, apiKey, accessToken } = installation
  const file = join(dataDir, 'credentials.json')
  assert.equal((await stat(file)).mode & 0o777, 0o600)
  const secrets = [apiKey, accessToken, apiKey.slice(4), accessToken.slice(7)]
  assert.deepEqual(await filesWith(dataDir, secrets), [file])
  // Proves that the search covers the records: it finds the team ID there.
  const records = await filesWith(dataDir, [installation.teamId])
  assert.ok(
    records.some((path) => path.startsWith(join(dataDir, 'atoll.db'))),
    records.join(' '),
  )
})

test('a second server on the same data is refused', async () => {
  const { code, stderr } = await tryRun(atoll, ['up'], { env: installation.env })
  assert.equal(code, 1)
  assert.match(stderr, new RegExp(`error: Another Atoll server is using ${installation.dataDir}`))
  assert.match(stderr, /ATOLL_DATA_DIR/)
})

test('the error for a port in use names the address and the setting that changes it', async () => {
  const dataDir = await mkdtemp(join(tmpdir(), 'atoll-busy-'))
  const port = await freePort()
  const holder = createServer().listen(port, '127.0.0.1')
  await once(holder, 'listening')
  const address = `127.0.0.1:${port}`
  const env = { ...installation.env, ATOLL_DATA_DIR: dataDir, ATOLL_LISTEN: address }
  const { code, stderr } = await tryRun(atoll, ['up'], { env })
  holder.close()
  await rm(dataDir, { recursive: true })
  assert.equal(code, 1)
  assert.match(stderr, new RegExp(`error: ${address} is in use by another program.*ATOLL_LISTEN=`))
})

test('Ctrl-C keeps sandboxes running and reports them, and the next start adopts them', async () => {
  const sandbox = await Sandbox.create({ ...installation.connection, timeoutMs: 600_000 })
  const count = 'for ((n = 0; ; n++)); do echo $n > count; sleep 0.1; done'
  await sandbox.commands.run(count, { background: true, timeoutMs: 0 })
  assert.equal(await installation.interrupt(), 0)
  const lastOutput = installation.output().slice(installation.output().indexOf(readyLine))
  assert.match(lastOutput, /1 sandbox keeps running; the next start takes over/)
  assert.match(lastOutput, /To end everything: .*atoll down\n$/)

  await installation.start()
  const read = async () => Number((await sandbox.commands.run('cat count')).stdout)
  const countAfterStart = await read()
  await waitFor('the count to increase', async () => (await read()) > countAfterStart, polling)
})

test('a second start shows neither key nor token', async () => {
  await installation.interrupt()
  const output = await readBanner(installation.env)
  assert.ok(!output.includes(installation.apiKey), output)
  assert.ok(!output.includes(installation.accessToken), output)
  const { E2B_API_KEY, ...urls } = exportsOf(output)
  assert.match(E2B_API_KEY ?? '', /^\$\(.*atoll key show\)$/)
  assert.equal(urls['E2B_API_URL'], installation.url)
})

test('down stops the server and all sandboxes, and reports both', async () => {
  await installation.start()
  const { connection } = installation
  const sandboxes = await Sandbox.list(connection).nextItems()
  assert.equal(sandboxes.length, 1)
  const output = await installation.down()
  assert.match(output, /server stopped: PID \d+\nsandboxes stopped: 1\n/)
  assert.match(output, /removed their namespaces, mounts, control groups and firewall rules/)
  await assert.rejects(fetch(`${installation.url}/health`))
  assert.match(await installation.down(), /no server was running\nsandboxes stopped: 0\n/)

  await installation.start()
  assert.deepEqual(await Sandbox.list(connection).nextItems(), [])
})

/** Runs `atoll up` until it prints the banner, then sends SIGINT. Returns its output. */
async function readBanner(env: NodeJS.ProcessEnv): Promise<string> {
  const child = spawn(atoll, ['up'], { env, stdio: ['ignore', 'pipe', 'inherit'] })
  let output = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => (output += text))
  const exit = once(child, 'close')
  await waitFor('the banner', () => output.includes(readyLine) || child.exitCode !== null, polling)
  child.kill('SIGINT')
  await exit
  assert.equal(child.exitCode, 0)
  return output
}

function exportsOf(banner: string): Partial<Record<string, string>> {
  const lines = banner.matchAll(/^ *export (\w+)=(.*)$/gm)
  return Object.fromEntries(Array.from(lines, ([, name, value]) => [name, value]))
}

/** Searches with grep, which reads files of any size, such as the disks of sandboxes. */
async function filesWith(folder: string, secrets: readonly string[]): Promise<string[]> {
  const patterns = secrets.flatMap((secret) => ['-e', secret])
  const args = ['--recursive', '--files-with-matches', '--fixed-strings', ...patterns, folder]
  return (await run('grep', args)).trim().split('\n')
}
