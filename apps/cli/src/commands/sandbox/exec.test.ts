import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { test } from 'node:test'
import { waitFor } from '@atoll/kit/wait'
import { setupCloud } from '../../sim/setup.ts'

test('stdout, stderr and the exit code pass through', async (t) => {
  const { cloud, run } = await setupCloud(t)
  const id = cloud.addSandbox()
  const outcome = await run(['sandbox', 'exec', id, 'echo out; echo err >&2; exit 7'])
  assert.deepEqual(outcome, { code: 7, stdout: 'out\n', stderr: 'err\n' })
})

test('one word runs in a login shell, several words without a shell', async (t) => {
  const { cloud, run } = await setupCloud(t)
  const id = cloud.addSandbox()
  const shell = await run(['sandbox', 'exec', id, 'echo "$((1 + 1))"'])
  const words = await run(['sandbox', 'exec', id, 'printf', '%s|', '$HOME', 'a  b', '--user'])
  assert.deepEqual([shell.stdout, words.stdout], ['2\n', '$HOME|a  b|--user|'])
  assert.deepEqual(cloud.processes.starts[0]?.request.process?.args.slice(0, 2), ['-l', '-c'])
})

test('user, working directory and variables reach the process', async (t) => {
  const { cloud, run } = await setupCloud(t)
  const id = cloud.addSandbox()
  const options = ['--user', 'root', '--cwd', '/usr', '-e', 'A=1', '-e', 'B=2']
  const { stdout } = await run(['sandbox', 'exec', ...options, id, 'pwd; echo $A$B'])
  assert.equal(stdout, '/usr\n12\n')
  const basic = Buffer.from('root:').toString('base64')
  assert.equal(cloud.processes.starts[0]?.authorization, `Basic ${basic}`)
})

test('piped input arrives unchanged, followed by its end', async (t) => {
  const { cloud, run } = await setupCloud(t)
  const id = cloud.addSandbox()
  const input = Buffer.alloc(300_000, 'binary \u0000\u00FF\n')
  const { stdout } = await run(['sandbox', 'exec', id, '--', 'sha256sum'], input)
  assert.equal(stdout.split(' ')[0], createHash('sha256').update(input).digest('hex'))
})

test('the program exits if the command does not read its input', async (t) => {
  const { cloud, start } = await setupCloud(t)
  const id = cloud.addSandbox()
  // Stdin stays open and empty.
  const { outcome } = start(['sandbox', 'exec', id, 'exit 3'])
  assert.equal((await outcome()).code, 3)
})

test('the program exits even if an input request gets no answer', async (t) => {
  const { cloud, run } = await setupCloud(t)
  const id = cloud.addSandbox()
  cloud.processes.ignoreCloseStdin = true
  const { code, stdout } = await run(['sandbox', 'exec', id, 'echo done'])
  assert.deepEqual([code, stdout], [0, 'done\n'])
})

test('a fatal signal gives exit code 128 plus its number', async (t) => {
  const { cloud, run } = await setupCloud(t)
  const id = cloud.addSandbox()
  assert.equal((await run(['sandbox', 'exec', id, 'kill -KILL $$'])).code, 137)
})

test('an interrupt sends SIGTERM to the command', async (t) => {
  const { cloud, start } = await setupCloud(t)
  const id = cloud.addSandbox()
  const script = 'trap "echo asked; exit 5" TERM; echo ready; while :; do sleep 0.05; done'
  const { child, outcome } = start(['sandbox', 'exec', id, script])
  child.stdout.once('data', () => child.kill('SIGINT'))
  assert.deepEqual(await outcome(), { code: 5, stdout: 'ready\nasked\n', stderr: '' })
})

test('a second interrupt kills the command', async (t) => {
  const { cloud, start } = await setupCloud(t)
  const id = cloud.addSandbox()
  const script = 'trap "echo no" TERM; echo ready; while :; do sleep 0.05; done'
  const { child, outcome } = start(['sandbox', 'exec', id, script])
  // The first line means that the trap is set, the second one that SIGTERM arrived.
  child.stdout.on('data', () => child.kill('SIGINT'))
  assert.deepEqual(await outcome(), { code: 137, stdout: 'ready\nno\n', stderr: '' })
})

test('--timeout kills the command and gives exit code 124', async (t) => {
  const { cloud, run } = await setupCloud(t)
  const id = cloud.addSandbox()
  const { code, stderr } = await run(['sandbox', 'exec', '--timeout', '1s', id, 'sleep', '60'])
  assert.deepEqual([code, stderr], [124, 'command killed: it exceeded the --timeout of 1 s\n'])
})

test('a paused sandbox is resumed', async (t) => {
  const { cloud, run } = await setupCloud(t)
  const id = cloud.addSandbox()
  const sandbox = cloud.sandboxes.get(id)
  assert.ok(sandbox)
  sandbox.state = 'paused'
  assert.equal((await run(['sandbox', 'exec', id, 'echo here'])).stdout, 'here\n')
  assert.ok(cloud.requests.some((line) => line.startsWith(`POST /v2/sandboxes/${id}/connect`)))
})

test('a lost connection to the sandbox is reported', async (t) => {
  const { cloud, start } = await setupCloud(t)
  const id = cloud.addSandbox()
  const { outcome } = start(['sandbox', 'exec', id, 'echo ready; sleep 60'])
  await waitFor('the command to start', () => cloud.processes.starts.length > 0)
  cloud.dropConnections()
  const { code, stderr } = await outcome()
  assert.equal(code, 1)
  assert.match(stderr, new RegExp(`^error: The connection to sandbox ${id} was lost\\nhint: `))
})

test('a closed stdout ends the program without an error message', async (t) => {
  const { cloud, start } = await setupCloud(t)
  const id = cloud.addSandbox()
  const { child } = start(['sandbox', 'exec', id, 'yes'])
  child.stdout.once('data', () => child.stdout.destroy())
  const [code] = await once(child, 'exit')
  assert.equal(code, 141)
})

for (const words of [['--user', 'root', 'id'], ['-x']]) {
  test(`${words[0]} after the sandbox ID is a usage error`, async (t) => {
    const { cloud, run } = await setupCloud(t)
    const id = cloud.addSandbox()
    const { code, stderr } = await run(['sandbox', 'exec', id, ...words])
    assert.equal(code, 2)
    assert.match(stderr, /put options before the sandbox ID/)
    assert.equal(cloud.processes.starts.length, 0)
  })
}

test('an unknown sandbox is reported with a hint', async (t) => {
  const { run } = await setupCloud(t)
  assert.deepEqual(await run(['sandbox', 'exec', 'inone', 'true']), {
    code: 1,
    stdout: '',
    stderr: 'error: Sandbox inone not found\nhint: `atoll sandbox list` shows your sandboxes\n',
  })
})
