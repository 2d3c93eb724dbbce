/** Entries, metadata and watching by the published SDK, unmodified, on both runtimes. */
import assert from 'node:assert/strict'
import { after, before, suite, test } from 'node:test'
import { waitFor } from '@atoll/kit/wait'
import { FileNotFoundError, InvalidArgumentError, Sandbox } from 'e2b'
import { install } from './installation.ts'
import type { Installation } from './installation.ts'

const patient = { timeoutMs: 60_000, intervalMs: 50 }

for (const runtime of ['gvisor', 'runc'] as const) {
  suite(`files and folders on ${runtime}`, { timeout: 240_000 }, () => {
    let installation: Installation
    let sandbox: Sandbox

    before(async () => {
      installation = await install({ ATOLL_RUNTIME: runtime })
      sandbox = await Sandbox.create({ ...installation.connection, timeoutMs: 600_000 })
    })
    after(() => installation[Symbol.asyncDispose]())

    const shell = (script: string) => sandbox.commands.run(script, { timeoutMs: 60_000 })
    const metadata = async (path: string) => (await sandbox.files.getInfo(path)).metadata ?? {}

    test('folders are made, listed, renamed and removed, as the default user', async () => {
      const { files } = sandbox
      assert.equal(await files.makeDir('one/two'), true)
      assert.equal(await files.makeDir('one/two'), false)
      await files.write('one/two/b.txt', 'content')
      await shell('ln -s two/b.txt one/link && ln -s nowhere one/broken')
      const entries = await files.list('one', { depth: 2 })
      assert.deepEqual(
        entries.map(({ path, type, permissions, owner, symlinkTarget }) => [
          path,
          type,
          permissions,
          owner,
          symlinkTarget,
        ]),
        [
          ['/home/user/one/link', 'file', 'Lrwxrwxrwx', 'user', '/home/user/one/two/b.txt'],
          ['/home/user/one/two', 'dir', 'drwxr-xr-x', 'user', undefined],
          ['/home/user/one/two/b.txt', 'file', '-rw-r--r--', 'user', undefined],
        ],
      )
      const { path, size } = await files.rename('one/two/b.txt', 'three/c.txt')
      assert.deepEqual([path, size], ['/home/user/three/c.txt', 7])
      await files.remove('one')
      assert.equal(await files.exists('one'), false)
      await files.remove('one')
      await assert.rejects(files.list('one'), FileNotFoundError)
      await assert.rejects(files.list('three/c.txt'), InvalidArgumentError)
    })

    test('metadata belongs to the file, whoever moves, writes or replaces it', async () => {
      const { files } = sandbox
      await files.write('m', 'x', { metadata: { author: 'ann', year: '2026' } })
      const given = { author: 'ann', year: '2026' }
      assert.deepEqual(await metadata('m'), given)
      await shell('echo more >> m && mv m n && chmod 600 n')
      assert.deepEqual(await metadata('n'), given)
      assert.deepEqual((await files.rename('n', 'folder/o')).metadata, given)
      await shell('mv folder elsewhere')
      const [listed] = await files.list('elsewhere')
      assert.deepEqual(listed?.metadata, given)
      await files.write('elsewhere/o', 'x', { metadata: { other: '1' } })
      assert.deepEqual(await metadata('elsewhere/o'), { other: '1' })
      await files.write('elsewhere/o', 'x')
      assert.deepEqual(await metadata('elsewhere/o'), {})
      await files.write('p', 'x', { metadata: given })
      await shell('rm p && echo new > p')
      assert.deepEqual(await metadata('p'), {})
    })

    test('metadata outlives the daemon', async () => {
      await sandbox.files.write('kept', 'x', { metadata: { a: '1' } })
      await shell('sudo kill -9 $(pgrep -P 1 -f envd.js)').catch(() => {})
      const found = await waitFor('envd', () => metadata('kept').catch(() => undefined), patient)
      assert.deepEqual(found, { a: '1' })
    })

    test('a tree is watched, with folders that are new and folders that move', async () => {
      const { files } = sandbox
      await files.makeDir('tree/old')
      const seen: string[] = []
      const sizes = new Map<string, number | undefined>()
      const handle = await files.watchDir(
        'tree',
        ({ type, name, entry }) => {
          seen.push(`${type} ${name}`)
          if (entry) sizes.set(name, entry.size)
        },
        { recursive: true, includeEntry: true },
      )
      const saw = (line: string) => waitFor(line, () => seen.includes(line), patient)
      await files.write('tree/old/a', 'hello')
      await saw('write old/a')
      assert.equal(sizes.get('old/a'), 5)
      await shell('cd tree && mkdir -p new/deep && echo 1 > new/deep/b && mv new moved')
      await saw('create moved')
      await shell('cd tree && echo 2 > moved/deep/c && rm -r old')
      await saw('remove old')
      await handle.stop()
      assert.equal(seen.filter((line) => /^create (new|moved).deep.b$/.test(line)).length, 1)
      for (const line of ['rename new', 'create moved/deep/c', 'remove old/a']) {
        assert.ok(seen.includes(line), `${line} is not in ${seen.join(', ')}`)
      }
    })

    test('ten thousand files are listed', async () => {
      await shell('mkdir /tmp/many && cd /tmp/many && seq 10000 | xargs touch')
      assert.equal((await sandbox.files.list('/tmp/many')).length, 10_000)
    })
  })
}
