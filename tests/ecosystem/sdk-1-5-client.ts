/** Client program of `sdk-1-5.test.ts`, with nothing but E2B_DOMAIN and a key. */
import assert from 'node:assert/strict'
import { CommandExitError, NotFoundError, Sandbox } from 'e2b-1.5'

const sandbox = await Sandbox.create({ timeoutMs: 600_000, metadata: { from: '1.5' } })
const result = await sandbox.commands.run('echo $((6 * 7)); echo problem >&2')
assert.deepEqual([result.stdout, result.stderr, result.exitCode], ['42\n', 'problem\n', 0])
await assert.rejects(sandbox.commands.run('exit 3'), CommandExitError)

const large = 'line of a large file\n'.repeat(200_000)
await sandbox.files.makeDir('/home/user/notes')
await sandbox.files.write('/home/user/notes/a.txt', 'first')
await sandbox.files.write('/home/user/notes/large.txt', large)
assert.equal(await sandbox.files.read('/home/user/notes/a.txt'), 'first')
assert.equal(await sandbox.files.read('/home/user/notes/large.txt'), large)
const names = (await sandbox.files.list('/home/user/notes')).map(({ name }) => name)
assert.deepEqual(names.toSorted(), ['a.txt', 'large.txt'])
await sandbox.files.remove('/home/user/notes/a.txt')
await assert.rejects(sandbox.files.read('/home/user/notes/a.txt'), NotFoundError)

const again = await Sandbox.connect(sandbox.sandboxId)
assert.equal((await again.commands.run('ls notes')).stdout, 'large.txt\n')
await sandbox.setTimeout(300_000)
const listed = await Sandbox.list()
assert.deepEqual(
  listed.map(({ metadata }) => metadata),
  [{ from: '1.5' }],
)

const { port } = new URL(`https://${sandbox.getHost(49_983)}`)
const health = await fetch(`https://${sandbox.getHost(49_983)}/health`)
assert.deepEqual([health.status, port], [204, process.env['E2B_DOMAIN']?.split(':')[1]])

await sandbox.kill()
assert.equal(await sandbox.isRunning(), false)
process.stdout.write('done')
process.exit(0)
