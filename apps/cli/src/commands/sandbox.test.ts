import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setupCloud } from '../sim/setup.ts'

test('create sends all options and prints only the ID', async (t) => {
  const { cloud, run } = await setupCloud(t)
  const options = ['--timeout', '2m', '-m', 'a=1', '-m', 'b=x=y', '--env', 'E=', '--auto-pause']
  const outcome = await run(['sandbox', 'create', ...options])
  assert.deepEqual(outcome, { code: 0, stdout: 'i0sandbox\n', stderr: '' })
  assert.deepEqual(cloud.sandboxes.get('i0sandbox')?.body, {
    templateID: 'base',
    timeout: 120,
    metadata: { a: '1', b: 'x=y' },
    envVars: { E: '' },
    autoPause: true,
  })
})

test('create --json prints the reply of the server, and sb is short for sandbox', async (t) => {
  const { run } = await setupCloud(t)
  const { stdout } = await run(['sb', 'create', 'base', '--json'])
  const { sandboxID, envdAccessToken } = JSON.parse(stdout)
  assert.deepEqual([sandboxID, envdAccessToken], ['i0sandbox', 'token-of-the-sandbox'])
})

test('an unknown template is reported with the message of the server', async (t) => {
  const { run } = await setupCloud(t)
  const { code, stdout, stderr } = await run(['sandbox', 'create', 'nope'])
  assert.deepEqual([code, stdout], [1, ''])
  assert.match(stderr, /^error: Template 'nope' not found\nhint: `atoll template list` and/)
})

test('list shows an aligned table of all pages', async (t) => {
  const { cloud, run } = await setupCloud(t)
  for (let count = 0; count < 3; count += 1) cloud.addSandbox()
  const second = cloud.sandboxes.get('i1sandbox')
  assert.ok(second)
  second.state = 'paused'
  const { stdout } = await run(['sandbox', 'list'])
  const lines = stdout.trimEnd().split('\n')
  assert.deepEqual(
    lines.map((line) => line.replace(/in \dm/, 'in Nm').split(/\s{2,}/)),
    [
      ['ID', 'TEMPLATE', 'STATE', 'STARTED', 'ENDS'],
      ['i0sandbox', 'base', 'running', '60m ago', 'in Nm'],
      ['i1sandbox', 'base', 'paused', '60m ago', '-'],
      ['i2sandbox', 'base', 'running', '60m ago', 'in Nm'],
    ],
  )
  const columns = lines.map((line) => line.search(/STATE|running|paused/))
  assert.equal(new Set(columns).size, 1)
  assert.ok(!stdout.includes('\u001B'))
})

test('list --state filters, and --json prints JSON', async (t) => {
  const { cloud, run } = await setupCloud(t)
  cloud.addSandbox()
  const running = JSON.parse(
    (await run(['sandbox', 'list', '--state', 'running', '--json'])).stdout,
  )
  const paused = JSON.parse((await run(['sandbox', 'list', '--state', 'paused', '--json'])).stdout)
  assert.deepEqual([running[0].sandboxID, running.length, paused], ['i0sandbox', 1, []])
})

test('an empty list prints a hint to stderr', async (t) => {
  const { run } = await setupCloud(t)
  const { stdout, stderr } = await run(['sandbox', 'list'])
  assert.deepEqual([stdout, stderr], ['', 'No sandboxes. Create one: atoll sandbox create\n'])
})

test('kill ends known sandboxes and reports unknown ones', async (t) => {
  const { cloud, run } = await setupCloud(t)
  cloud.addSandbox()
  cloud.addSandbox()
  const outcome = await run(['sandbox', 'kill', 'i0sandbox', 'igone', 'i1sandbox'])
  assert.deepEqual(outcome, {
    code: 1,
    stdout: 'killed i0sandbox\nkilled i1sandbox\n',
    stderr: 'error: Sandbox igone not found\nhint: `atoll sandbox list` shows your sandboxes\n',
  })
  assert.equal(cloud.sandboxes.size, 0)
})

test('kill --all ends all sandboxes', async (t) => {
  const { cloud, run } = await setupCloud(t)
  for (let count = 0; count < 3; count += 1) cloud.addSandbox()
  assert.equal((await run(['sandbox', 'kill', '--all'])).code, 0)
  assert.equal(cloud.sandboxes.size, 0)
})

for (const args of [[], ['i0sandbox', '--all']]) {
  test(`kill ${args.join(' ')} is a usage error and ends no sandbox`, async (t) => {
    const { cloud, run } = await setupCloud(t)
    cloud.addSandbox()
    const { code, stderr } = await run(['sandbox', 'kill', ...args])
    assert.equal(code, 2)
    assert.match(stderr, /Give either sandbox IDs or --all/)
    assert.equal(cloud.sandboxes.size, 1)
  })
}

test('status counts sandboxes, and shows a server that is down', async (t) => {
  const { cloud, run } = await setupCloud(t)
  cloud.addSandbox()
  const up = await run(['status', '--json'])
  assert.deepEqual(JSON.parse(up.stdout), {
    server: 'up',
    apiUrl: cloud.url,
    sandboxUrl: cloud.url,
    sandboxes: { running: 1, paused: 0 },
  })
  await cloud.close()
  const down = await run(['status'])
  assert.equal(down.code, 1)
  assert.match(down.stdout, /^server +down\n/)
})
