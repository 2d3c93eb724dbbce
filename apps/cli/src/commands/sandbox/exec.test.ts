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

test('one word is run by a login shell, several are run as they are', async (t) => {
  const { cloud, run } = await setupCloud(t)
  const id = cloud.addSandbox()
  const shell = await run(['sandbox', 'exec', id, 'echo "$((1 + 1))"'])
  const words = await run(['sandbox', 'exec', id, 'printf', '%s|', '$HOME', 'a  b', '--user'])
  assert.deepEqual([shell.stdout, words.stdout], ['2\n', '$HOME|a  b|--user|'])
  assert.deepEqual(cloud.processes.starts[0]?.request.process?.args.slice(0, 2), ['-l', '-c'])
})

test('user, folder and variables reach the process', async (t) => {
  const { cloud, run } = await setupCloud(t)
  const id = cloud.addSandbox()
  const options = ['--user', 'root', '--cwd', '/usr', '-e', 'A=1', '-e', 'B=2']
  const { stdout } = await run(['sandbox', 'exec', ...options, id, 'pwd; echo $A$B'])
  assert.equal(stdout, '/usr\n12\n')
  const basic = Buffer.from('root:').toString('base64')
  assert.equal(cloud.processes.starts[0]?.authorization, `Basic ${basic}`)
})

test('what is piped in arrives byte for byte, and its end too', async (t) => {
  const { cloud, run } = await setupCloud(t)
  const id = cloud.addSandbox()
  const input = Buffer.alloc(300_000, 'binary \u0000\u00FF\n')
  const { stdout } = await run(['sandbox', 'exec', id, '--', 'sha256sum'], input)
  assert.equal(stdout.split(' ')[0], createHash('sha256').update(input).digest('hex'))
})

test('a command that does not read its input ends all the same', async (t) => {
  const { cloud, start } = await setupCloud(t)
  const id = cloud.addSandbox()
  // Stdin stays open and empty.
  const { outcome } = start(['sandbox', 'exec', id, 'exit 3'])
  assert.equal((await outcome()).code, 3)
})

test('an input request without an answer does not keep the program from ending', async (t) => {
  const { cloud, run } = await setupCloud(t)
  const id = cloud.addSandbox()
  cloud.processes.ignoreCloseStdin = true
  const { code, stdout } = await run(['sandbox', 'exec', id, 'echo done'])
  assert.deepEqual([code, stdout], [0, 'done\n'])
})

test('death by a signal gives 128 and its number', async (t) => {
  const { cloud, run } = await setupCloud(t)
  const id = cloud.addSandbox()
  assert.equal((await run(['sandbox', 'exec', id, 'kill -KILL $$'])).code, 137)
})

test('an interrupt asks the command to end', async (t) => {
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

test('--timeout ends the command with 124', async (t) => {
  const { cloud, run } = await setupCloud(t)
  const id = cloud.addSandbox()
  const { code, stderr } = await run(['sandbox', 'exec', '--timeout', '1s', id, 'sleep', '60'])
  assert.deepEqual([code, stderr], [124, 'killed after 1 s, as --timeout asks\n'])
})

test('a paused sandbox is resumed first', async (t) => {
  const { cloud, run } = await setupCloud(t)
  const id = cloud.addSandbox()
  const sandbox = cloud.sandboxes.get(id)
  assert.ok(sandbox)
  sandbox.state = 'paused'
  assert.equal((await run(['sandbox', 'exec', id, 'echo here'])).stdout, 'here\n')
  assert.ok(cloud.requests.some((line) => line.startsWith(`POST /v2/sandboxes/${id}/connect`)))
})

test('the end of a sandbox under a running command is told', async (t) => {
  const { cloud, start } = await setupCloud(t)
  const id = cloud.addSandbox()
  const { outcome } = start(['sandbox', 'exec', id, 'echo ready; sleep 60'])
  await waitFor('the command to start', () => cloud.processes.starts.length > 0)
  cloud.dropConnections()
  const { code, stderr } = await outcome()
  assert.equal(code, 1)
  assert.match(stderr, new RegExp(`^error: The connection to sandbox ${id} was lost\\nhint: `))
})

test('a reader that has enough ends the program quietly', async (t) => {
  const { cloud, start } = await setupCloud(t)
  const id = cloud.addSandbox()
  const { child } = start(['sandbox', 'exec', id, 'yes'])
  child.stdout.once('data', () => child.stdout.destroy())
  const [code] = await once(child, 'exit')
  assert.equal(code, 141)
})

for (const words of [['--user', 'root', 'id'], ['-x']]) {
  test(`${words[0]} after the id is taken for neither option nor command`, async (t) => {
    const { cloud, run } = await setupCloud(t)
    const id = cloud.addSandbox()
    const { code, stderr } = await run(['sandbox', 'exec', id, ...words])
    assert.equal(code, 2)
    assert.match(stderr, /options go before the id/)
    assert.equal(cloud.processes.starts.length, 0)
  })
}

test('an unknown sandbox is told with the way to find the known ones', async (t) => {
  const { run } = await setupCloud(t)
  assert.deepEqual(await run(['sandbox', 'exec', 'inone', 'true']), {
    code: 1,
    stdout: '',
    stderr: 'error: Sandbox inone not found\nhint: `atoll sandbox list` shows what there is\n',
  })
})
