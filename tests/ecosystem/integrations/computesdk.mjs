/** ComputeSDK with its E2B provider, as in the README of @computesdk/e2b. */
import assert from 'node:assert/strict'
import { e2b } from '@computesdk/e2b'
import { compute } from 'computesdk'
import { fetchWhenListening } from './fetch-when-listening.mjs'

compute.setConfig({ provider: e2b({ apiKey: process.env.E2B_API_KEY }) })
const sandbox = await compute.sandbox.create()
assert.equal((await sandbox.getInfo()).status, 'running')

const python = await sandbox.runCommand("python3 - <<'PY'\nprint(sum(range(10)))\nPY")
assert.deepEqual([python.stdout, python.exitCode], ['45\n', 0])
const failed = await sandbox.runCommand('echo problem >&2; exit 3')
assert.deepEqual([failed.stderr, failed.exitCode], ['problem\n', 3])
const placed = await sandbox.runCommand('echo "$NAME in $PWD"', {
  cwd: '/tmp',
  env: { NAME: 'atoll' },
})
assert.equal(
  placed.stdout,
  ' in /tmp\n',
  'the package sets NAME for the command, not for its shell',
)
const given = await sandbox.runCommand('printenv NAME', { env: { NAME: 'atoll' } })
assert.equal(given.stdout, 'atoll\n')

const { filesystem } = sandbox
await filesystem.mkdir('/tmp/data')
await filesystem.writeFile('/tmp/data/hello.py', 'print("Hello World")')
assert.equal(await filesystem.readFile('/tmp/data/hello.py'), 'print("Hello World")')
const entries = await filesystem.readdir('/tmp/data')
assert.deepEqual(
  entries.map(({ name }) => name),
  ['hello.py'],
)
assert.equal((await sandbox.runCommand('python3 /tmp/data/hello.py')).stdout, 'Hello World\n')
await filesystem.remove('/tmp/data/hello.py')
assert.equal(await filesystem.exists('/tmp/data/hello.py'), false)

await filesystem.writeFile('/tmp/data/index.html', 'served')
await sandbox.runCommand('python3 -m http.server 8000 --directory /tmp/data', { background: true })
const url = await sandbox.getUrl({ port: 8000 })
assert.match(url, /^https:\/\/8000-/)
assert.equal(await fetchWhenListening(`${url}/index.html`), 'served')

const listed = await compute.sandbox.list()
assert.deepEqual(
  listed.map(({ sandboxId }) => sandboxId),
  [sandbox.sandboxId],
)
await sandbox.destroy()
assert.deepEqual(await compute.sandbox.list(), [])
process.stdout.write('done')
process.exit(0)
