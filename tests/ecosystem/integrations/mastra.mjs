/** Workspace of @mastra/core on a sandbox of @mastra/e2b, as in the README of @mastra/e2b. */
import assert from 'node:assert/strict'
import { Workspace } from '@mastra/core/workspace'
import { E2BSandbox } from '@mastra/e2b'
import { Sandbox } from 'e2b'
import { fetchWhenListening } from './fetch-when-listening.mjs'

const sandbox = new E2BSandbox({ id: 'project-1', template: 'base', timeout: 600_000 })
const workspace = new Workspace({ sandbox })
await workspace.init()
assert.equal(sandbox.status, 'running')

const result = await sandbox.executeCommand('echo $((6 * 7)); echo problem >&2')
assert.deepEqual([result.stdout, result.stderr, result.exitCode], ['42\n', 'problem\n', 0])
// The package itself reports the output of a failed command twice.
assert.equal((await sandbox.executeCommand('exit 3')).exitCode, 3)
const withArgs = await sandbox.executeCommand('printf', ['%s|', 'a b', '$HOME'])
assert.equal(withArgs.stdout, 'a b|$HOME|')

await sandbox.writeFiles([
  { path: '/tmp/site/index.html', content: 'served' },
  { path: '/tmp/site/bytes', content: Buffer.from([0, 255]) },
])
assert.equal((await sandbox.executeCommand('wc -c < /tmp/site/bytes')).stdout.trim(), '2')
assert.equal(await sandbox.e2b.files.read('/tmp/site/index.html'), 'served')

const server = await sandbox.processes.spawn('python3 -m http.server 8000 --directory /tmp/site')
const url = await sandbox.networking.getPortUrl(8000)
assert.match(url, /^https:\/\/8000-/)
assert.equal(await fetchWhenListening(`${url}/index.html`), 'served')
const processes = await sandbox.processes.list()
assert.ok(processes.some(({ pid }) => pid === server.pid))

// Stop pauses the sandbox; another object with the same ID finds it and resumes it.
const { sandboxId } = sandbox.e2b
await sandbox.stop()
const again = new E2BSandbox({ id: 'project-1', template: 'base' })
assert.equal((await again.executeCommand('cat', ['/tmp/site/index.html'])).stdout, 'served')
assert.equal(again.e2b.sandboxId, sandboxId)
assert.equal(await fetchWhenListening(`${url}/index.html`), 'served')
await new Workspace({ sandbox: again }).destroy()
assert.equal(again.status, 'destroyed')
assert.deepEqual(await Sandbox.list().nextItems(), [])
process.stdout.write('done')
process.exit(0)
