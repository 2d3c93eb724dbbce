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

function e2b(args: readonly string[], overrides: { env?: object; input?: string } = {}) {
  const env = { ...installation.env, HOME: home, ...overrides.env }
  const options = { env, ...(overrides.input !== undefined && { input: overrides.input }) }
  return tryRun(process.execPath, [program, ...args], options)
}

test('list and info show a sandbox', async () => {
  const metadata = { made: 'for the list' }
  const { sandboxId } = await Sandbox.create({ ...installation.connection, metadata })
  const list = await e2b(['sandbox', 'list'])
  assert.match(list.stdout, new RegExp(`${sandboxId} .* base .* Running .*for the list`))
  const json = await e2b(['sandbox', 'list', '--format', 'json'])
  const sandboxes: { sandboxId: string }[] = JSON.parse(json.stdout)
  assert.ok(sandboxes.some((sandbox) => sandbox.sandboxId === sandboxId))
  const info = await e2b(['sandbox', 'info', sandboxId])
  assert.deepEqual([info.code, info.stdout.includes('State: running')], [0, true])
})

test('exec passes on output, input, options and the exit code', async () => {
  const { sandboxId } = await Sandbox.create(installation.connection)
  const result = await e2b(['sandbox', 'exec', sandboxId, 'echo out; echo err >&2; exit 4'])
  assert.deepEqual([result.code, result.stdout], [4, 'out\n'])
  assert.match(result.stderr, /^err\n/)
  const pipeResult = await e2b(['sandbox', 'exec', sandboxId, 'tr a-z A-Z'], {
    input: 'through a pipe',
  })
  assert.deepEqual([pipeResult.code, pipeResult.stdout], [0, 'THROUGH A PIPE'])
  const options = ['--user', 'root', '--cwd', '/etc', '--env', 'WORD=here']
  const optionsResult = await e2b([
    'sandbox',
    'exec',
    ...options,
    sandboxId,
    'whoami; pwd; echo $WORD',
  ])
  assert.deepEqual([optionsResult.code, optionsResult.stdout], [0, 'root\n/etc\nhere\n'])
})

test('create --detach creates a sandbox, and kill ends it', async () => {
  const createResult = await e2b(['sandbox', 'create', '--detach', 'base'])
  const [sandboxId = ''] = /\bi[a-z0-9]{20}\b/.exec(allOutput(createResult)) ?? []
  const { connection } = installation
  assert.equal((await Sandbox.getInfo(sandboxId, connection)).state, 'running')
  const killResult = await e2b(['sandbox', 'kill', sandboxId])
  assert.deepEqual([killResult.code, /has been killed/.test(allOutput(killResult))], [0, true])
  await assert.rejects(Sandbox.getInfo(sandboxId, connection))
  const secondKill = await e2b(['sandbox', 'kill', sandboxId])
  assert.match(allOutput(secondKill), /wasn't found/)
})

test('a wrong key and an absent sandbox fail with their reason', async () => {
  const env = { E2B_API_KEY: `e2b_${'0'.repeat(40)}` }
  const wrongKeyResult = await e2b(['sandbox', 'list'], { env })
  assert.equal(wrongKeyResult.code, 1)
  assert.match(wrongKeyResult.stderr, /The API key in X-API-Key is not valid/)
  const absentResult = await e2b(['sandbox', 'exec', 'iaaaaaaaaaaaaaaaaaaaa', 'true'])
  assert.equal(absentResult.code, 1)
  assert.match(absentResult.stderr, /not found/)
})

function allOutput({ stdout, stderr }: RunResult): string {
  return stdout + stderr
}

test('template create builds a Dockerfile, and list, publish and delete find the template', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'e2b-template-'))
  const dockerfile = ['FROM e2bdev/base', 'ENV WORD=here', 'RUN echo "$WORD" > /home/user/made', '']
  await writeFile(join(folder, 'e2b.Dockerfile'), dockerfile.join('\n'))
  const size = ['--cpu-count', '1', '--memory-mb', '256']
  const createResult = await e2b(['template', 'create', 'by-cli', '--path', folder, ...size])
  await rm(folder, { recursive: true })
  assert.equal(createResult.code, 0, createResult.stdout + createResult.stderr)
  const { stdout } = await e2b(['template', 'list', '--format', 'json'])
  const templates: { templateID: string; names: string[]; buildStatus: string }[] =
    JSON.parse(stdout)
  const template = templates.find(({ names }) => names.some((name) => name.endsWith('/by-cli')))
  assert.equal(template?.buildStatus, 'ready')
  const sandbox = await Sandbox.create('by-cli', installation.connection)
  assert.equal(await sandbox.files.read('made'), 'here\n')
  await sandbox.kill()
  const publishResult = await e2b(['template', 'publish', template.templateID, '--yes'])
  assert.equal(publishResult.code, 0, publishResult.stderr)
  const deleteResult = await e2b(['template', 'delete', template.templateID, '--yes'])
  assert.equal(deleteResult.code, 0, deleteResult.stderr)
  await assert.rejects(Sandbox.create('by-cli', installation.connection), /404/)
})
