/** The published command line, unmodified. Environment variables name the server. */
import assert from 'node:assert/strict'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { tryRun } from '@atoll/kit/run'
import type { RunResult } from '@atoll/kit/run'
import { Sandbox } from 'e2b'
import { install } from '../installation.ts'
import type { Installation } from '../installation.ts'

const program = fileURLToPath(import.meta.resolve('@e2b/cli/dist/index.js'))

let installation: Installation
/** Home folder of the command line, which stores its login there: not that of the person who runs the tests. */
let home: string

before(async () => {
  installation = await install()
  home = await mkdtemp(join(tmpdir(), 'e2b-home-'))
})
after(async () => {
  await installation[Symbol.asyncDispose]()
  await rm(home, { recursive: true })
})

function e2b(args: readonly string[], given: { env?: object; input?: string } = {}) {
  const env = { ...installation.env, HOME: home, ...given.env }
  const options = { env, ...(given.input !== undefined && { input: given.input }) }
  return tryRun(process.execPath, [program, ...args], options)
}

test('list and info show a sandbox', async () => {
  const metadata = { made: 'for the list' }
  const { sandboxId } = await Sandbox.create({ ...installation.connection, metadata })
  const list = await e2b(['sandbox', 'list'])
  assert.match(list.stdout, new RegExp(`${sandboxId} .* base .* Running .*for the list`))
  const json = await e2b(['sandbox', 'list', '--format', 'json'])
  const listed: { sandboxId: string }[] = JSON.parse(json.stdout)
  assert.ok(listed.some((sandbox) => sandbox.sandboxId === sandboxId))
  const info = await e2b(['sandbox', 'info', sandboxId])
  assert.deepEqual([info.code, info.stdout.includes('State: running')], [0, true])
})

test('exec passes on output, input, options and the exit code', async () => {
  const { sandboxId } = await Sandbox.create(installation.connection)
  const plain = await e2b(['sandbox', 'exec', sandboxId, 'echo out; echo err >&2; exit 4'])
  assert.deepEqual([plain.code, plain.stdout], [4, 'out\n'])
  assert.match(plain.stderr, /^err\n/)
  const fed = await e2b(['sandbox', 'exec', sandboxId, 'tr a-z A-Z'], { input: 'through a pipe' })
  assert.deepEqual([fed.code, fed.stdout], [0, 'THROUGH A PIPE'])
  const options = ['--user', 'root', '--cwd', '/etc', '--env', 'WORD=here']
  const told = await e2b(['sandbox', 'exec', ...options, sandboxId, 'whoami; pwd; echo $WORD'])
  assert.deepEqual([told.code, told.stdout], [0, 'root\n/etc\nhere\n'])
})

test('create --detach makes a sandbox that kill ends', async () => {
  const created = await e2b(['sandbox', 'create', '--detach', 'base'])
  const [sandboxId = ''] = /\bi[a-z0-9]{20}\b/.exec(everything(created)) ?? []
  const { connection } = installation
  assert.equal((await Sandbox.getInfo(sandboxId, connection)).state, 'running')
  const killed = await e2b(['sandbox', 'kill', sandboxId])
  assert.deepEqual([killed.code, /has been killed/.test(everything(killed))], [0, true])
  await assert.rejects(Sandbox.getInfo(sandboxId, connection))
  const again = await e2b(['sandbox', 'kill', sandboxId])
  assert.match(everything(again), /wasn't found/)
})

test('a wrong key and an absent sandbox fail with their reason', async () => {
  const env = { E2B_API_KEY: `e2b_${'0'.repeat(40)}` }
  const denied = await e2b(['sandbox', 'list'], { env })
  assert.equal(denied.code, 1)
  assert.match(denied.stderr, /The API key in X-API-Key is not valid/)
  const absent = await e2b(['sandbox', 'exec', 'iaaaaaaaaaaaaaaaaaaaa', 'true'])
  assert.equal(absent.code, 1)
  assert.match(absent.stderr, /not found/)
})

function everything({ stdout, stderr }: RunResult): string {
  return stdout + stderr
}

test('template create builds a Dockerfile, and list, publish and delete know the template', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'e2b-template-'))
  const dockerfile = ['FROM e2bdev/base', 'ENV WORD=here', 'RUN echo "$WORD" > /home/user/made', '']
  await writeFile(join(folder, 'e2b.Dockerfile'), dockerfile.join('\n'))
  const size = ['--cpu-count', '1', '--memory-mb', '256']
  const created = await e2b(['template', 'create', 'by-cli', '--path', folder, ...size])
  await rm(folder, { recursive: true })
  assert.equal(created.code, 0, created.stdout + created.stderr)
  const { stdout } = await e2b(['template', 'list', '--format', 'json'])
  const listed: { templateID: string; names: string[]; buildStatus: string }[] = JSON.parse(stdout)
  const made = listed.find(({ names }) => names.some((name) => name.endsWith('/by-cli')))
  assert.equal(made?.buildStatus, 'ready')
  const sandbox = await Sandbox.create('by-cli', installation.connection)
  assert.equal(await sandbox.files.read('made'), 'here\n')
  await sandbox.kill()
  const published = await e2b(['template', 'publish', made.templateID, '--yes'])
  assert.equal(published.code, 0, published.stderr)
  const deleted = await e2b(['template', 'delete', made.templateID, '--yes'])
  assert.equal(deleted.code, 0, deleted.stderr)
  await assert.rejects(Sandbox.create('by-cli', installation.connection), /404/)
})
