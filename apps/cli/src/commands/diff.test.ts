import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { SimulatedChanges } from '../sim/changes.ts'
import { setupCloud } from '../sim/setup.ts'

const changed: readonly (readonly [string, Parameters<SimulatedChanges['set']>[1]])[] = [
  ['/etc/motd', { before: { content: 'hello\n' } }],
  ['/home/user', { after: { type: 'directory', content: '' } }],
  ['/home/user/a.txt', { before: { content: 'a\nb\n' }, after: { content: 'a\nB\n' } }],
  ['/home/user/big', { after: { content: '', isTruncated: true } }],
  ['/home/user/bin', { before: {}, after: {} }],
  ['/home/user/\u001B[2J', { after: { content: 'x\u001B[31m\n' } }],
]

test('diff lists all changed files, and escapes their names', async (t) => {
  const { cloud, run } = await setupCloud(t)
  const id = cloud.addSandbox()
  for (const [path, sides] of changed) cloud.sandboxes.get(id)?.changes.set(path, sides)
  assert.deepEqual(await run(['sandbox', 'diff', id]), {
    code: 0,
    stdout: `D /etc/motd
A /home/user/
M /home/user/a.txt
A /home/user/big
M /home/user/bin
A /home/user/\\x1b[2J
`,
    stderr: '',
  })
  const json = JSON.parse((await run(['sandbox', 'diff', id, '/etc', '--json'])).stdout)
  assert.deepEqual(
    json.map(({ path }: { path: string }) => path),
    ['/etc/motd'],
  )
})

test('diff with a path prints the differences of the files below it', async (t) => {
  const { cloud, run } = await setupCloud(t)
  const id = cloud.addSandbox()
  for (const [path, sides] of changed) cloud.sandboxes.get(id)?.changes.set(path, sides)
  const { stdout } = await run(['sandbox', 'diff', id, '/home/user'])
  assert.equal(
    stdout,
    `--- a/home/user/a.txt
+++ b/home/user/a.txt
@@ -1,2 +1,2 @@
 a
-b
+B
--- /dev/null
+++ b/home/user/big
The file is larger than 1 MiB: not compared
--- a/home/user/bin
+++ b/home/user/bin
Binary files differ
--- /dev/null
+++ b/home/user/\\x1b[2J
@@ -0,0 +1,1 @@
+x\\x1b[31m
`,
  )
  const list = await run(['sandbox', 'diff', id, '/etc', '--list'])
  assert.equal(list.stdout, 'D /etc/motd\n')
})
