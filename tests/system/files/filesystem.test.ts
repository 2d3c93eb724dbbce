/** Entries, metadata and watching by the published SDK, unmodified, on both runtimes. */
import assert from 'node:assert/strict'
import { after, before, suite, test } from 'node:test'
import { waitFor } from '@atoll/kit/wait'
import {
  AuthenticationError,
  FileNotFoundError,
  InvalidArgumentError,
  Sandbox,
  SandboxError,
  TimeoutError,
} from 'e2b'
import { install } from '../installation.ts'
import type { Installation } from '../installation.ts'

const polling = { intervalMs: 50 }

for (const runtime of ['gvisor', 'runc'] as const) {
  suite(`files and folders on ${runtime}`, () => {
    let installation: Installation
    let sandbox: Sandbox

    before(async () => {
      installation = await install({ ATOLL_RUNTIME: runtime })
      sandbox = await Sandbox.create({ ...installation.connection, timeoutMs: 600_000 })
    })
    after(() => installation[Symbol.asyncDispose]())

    const shell = (script: string) => sandbox.commands.run(script, { timeoutMs: 120_000 })
    const metadata = async (path: string) => (await sandbox.files.getInfo(path)).metadata ?? {}

    test('folders are created, listed, renamed and removed as the default user', async () => {
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

    test('an entry has kind, size, mode, owner, time and symlink target', async () => {
      const { files } = sandbox
      await shell(`mkdir -p info/folder && cd info && printf 12345 > file && sudo chown root:user file &&
        sudo chmod 4751 file && sudo touch -d 2024-02-03T04:05:06.789Z file && chmod 1777 folder &&
        ln -s folder link && ln -s file chain && ln -s chain chained && ln -s nothing broken &&
        mkfifo pipe && sudo touch foreign && sudo chown 4321:8765 foreign`)
      const info = async (name: string) => {
        const { type, size, mode, permissions, owner, group, symlinkTarget } = await files.getInfo(
          `info/${name}`,
        )
        return [type, size, mode.toString(8), permissions, `${owner}:${group}`, symlinkTarget]
      }
      const folder = '/home/user/info'
      const link = 'Lrwxrwxrwx'
      assert.deepEqual(await info('file'), ['file', 5, '751', 'urwxr-x--x', 'root:user', undefined])
      const { name, path, modifiedTime } = await files.getInfo('info/file')
      assert.deepEqual([name, path], ['file', `${folder}/file`])
      assert.equal(modifiedTime?.toISOString(), '2024-02-03T04:05:06.789Z')
      const [type, , mode, permissions] = await info('folder')
      assert.deepEqual([type, mode, permissions], ['dir', '777', 'dtrwxrwxrwx'])
      assert.deepEqual(await info('link'), ['dir', 6, '777', link, 'user:user', `${folder}/folder`])
      assert.deepEqual(await info('chained'), [
        'file',
        5,
        '751',
        link,
        'user:user',
        `${folder}/file`,
      ])
      const broken = [undefined, 7, '0', link, 'user:user', `${folder}/broken`]
      assert.deepEqual(await info('broken'), broken)
      assert.deepEqual((await info('pipe'))[0], undefined)
      assert.equal((await info('foreign'))[4], '4321:8765')
      const entries = await files.list('info')
      assert.deepEqual(
        entries.map((entry) => entry.name),
        ['chain', 'chained', 'file', 'folder', 'foreign', 'link'],
      )
      assert.equal(await files.exists('info/broken'), true)
      assert.equal(await files.exists('info/nothing'), false)
    })

    test('a list has the requested depth, and follows no link but its own path', async () => {
      const { files } = sandbox
      await shell('mkdir -p levels/a/b/c && touch levels/z levels/a/b/c/d && ln -s a levels/to-a')
      await shell('ln -s levels to-levels')
      const listPaths = async (path: string, depth?: number) => {
        const entries = await files.list(path, depth === undefined ? {} : { depth })
        return entries.map((entry) => entry.path.replace('/home/user/', ''))
      }
      assert.deepEqual(await listPaths('levels'), ['levels/a', 'levels/to-a', 'levels/z'])
      assert.deepEqual(await listPaths('levels', 2), [
        'levels/a',
        'levels/a/b',
        'levels/to-a',
        'levels/z',
      ])
      assert.deepEqual((await listPaths('levels', 9)).length, 6)
      assert.deepEqual(await listPaths('to-levels/'), [
        'to-levels/a',
        'to-levels/to-a',
        'to-levels/z',
      ])
      await assert.rejects(files.list('levels', { depth: 0 }), InvalidArgumentError)
    })

    test('a user has its own home, and owns the files that it creates', async () => {
      const { files } = sandbox
      await files.makeDir('made/by', { user: 'root' })
      await files.makeDir('~/made/by')
      await files.makeDir('/tmp/shared/deep')
      await files.makeDir('/tmp/shared/deep/of-root', { user: 'root' })
      await files.write('/tmp/shared/deep/file', 'x', { user: 'root' })
      const owner = async (path: string) => (await files.getInfo(path)).owner
      assert.deepEqual(
        await Promise.all(
          [
            '/root/made',
            '/root/made/by',
            '/home/user/made/by',
            '/tmp/shared',
            '/tmp/shared/deep/of-root',
            '/tmp/shared/deep/file',
          ].map(owner),
        ),
        ['root', 'root', 'user', 'user', 'root', 'root'],
      )
      const { path } = await files.rename('~/made/by', 'moved', { user: 'root' })
      assert.equal(path, '/root/moved')
      assert.equal((await files.getInfo('../user/made')).path, '/home/user/made')
      assert.equal((await files.getInfo('~')).path, '/home/user')
      // envd reads and writes files for every client with the token, whatever their mode.
      await shell('sudo sh -c "echo secret > /root/secret && chmod 600 /root/secret"')
      assert.equal(await files.read('/root/secret'), 'secret\n')
      await assert.rejects(files.list('x', { user: 'nobody-here' }), AuthenticationError)
    })

    test('each failure has its own error', async () => {
      const { files } = sandbox
      await files.write('plain', 'x')
      await files.write('full/inner', 'x')
      await assert.rejects(files.getInfo('missing'), FileNotFoundError)
      await assert.rejects(files.rename('missing', 'elsewhere'), FileNotFoundError)
      await assert.rejects(files.makeDir('plain'), InvalidArgumentError)
      await assert.rejects(files.list('~root'), InvalidArgumentError)
      await assert.rejects(
        files.watchDir('missing', () => {}),
        FileNotFoundError,
      )
      await assert.rejects(
        files.watchDir('plain', () => {}),
        InvalidArgumentError,
      )
      await assert.rejects(files.rename('plain', 'full'), SandboxError)
      await assert.rejects(files.rename('plain', '/dev/shm/plain'), SandboxError)
      await assert.rejects(files.makeDir('plain/below'), SandboxError)
      await files.rename('plain', 'full/inner')
      assert.equal(await files.exists('plain'), false)
      await files.remove('full/inner')
      assert.deepEqual(await files.list('full'), [])
    })

    test('a watch reports each kind of change in its folder only, until it is stopped', async () => {
      const { files } = sandbox
      await shell('mkdir -p kinds/inner && touch kinds/old')
      const events: string[] = []
      const otherNames: string[] = []
      const handle = await files.watchDir('kinds', ({ type, name, entry }) => {
        events.push(`${type} ${name}`)
        assert.equal(entry, undefined)
      })
      const otherHandle = await files.watchDir('~/kinds', ({ name }) => void otherNames.push(name))
      await shell(`cd kinds && touch inner/unseen && : > new && echo x > new && chmod 600 new &&
        mv new newer && rm newer && mv old ../away && mkdir last`)
      await waitFor('the last event', () => events.includes('create last'), polling)
      const expectedEvents = ['create new', 'write new', 'chmod new', 'rename new', 'create newer']
      for (const line of [...expectedEvents, 'remove newer', 'rename old']) {
        assert.ok(events.includes(line), `${line} is not in ${events.join(', ')}`)
      }
      assert.deepEqual(
        expectedEvents.toSorted((a, b) => events.indexOf(a) - events.indexOf(b)),
        expectedEvents,
      )
      assert.ok(!events.some((line) => line.includes('unseen')))
      await handle.stop()
      const count = events.length
      await shell('touch kinds/afterwards')
      await waitFor(
        'the event of the other watch',
        () => otherNames.includes('afterwards'),
        polling,
      )
      await otherHandle.stop()
      assert.equal(events.length, count)
    })

    test('a watch lasts for the requested time, and reports its end', async () => {
      const exit = Promise.withResolvers<Error | undefined>()
      await sandbox.files.watchDir('/tmp', () => {}, { timeoutMs: 500, onExit: exit.resolve })
      assert.ok((await exit.promise) instanceof TimeoutError)
    })

    test('metadata survives moves and writes of a file, but not an upload or a removal', async () => {
      const { files } = sandbox
      await files.write('m', 'x', { metadata: { author: 'ann', year: '2026' } })
      const labels = { author: 'ann', year: '2026' }
      assert.deepEqual(await metadata('m'), labels)
      await shell('echo more >> m && mv m n && chmod 600 n')
      assert.deepEqual(await metadata('n'), labels)
      assert.deepEqual((await files.rename('n', 'folder/o')).metadata, labels)
      await shell('mv folder elsewhere')
      const [entry] = await files.list('elsewhere')
      assert.deepEqual(entry?.metadata, labels)
      await files.write('elsewhere/o', 'x', { metadata: { other: '1' } })
      assert.deepEqual(await metadata('elsewhere/o'), { other: '1' })
      await files.write('elsewhere/o', 'x')
      assert.deepEqual(await metadata('elsewhere/o'), {})
      await files.write('p', 'x', { metadata: labels })
      await shell('rm p && echo new > p')
      assert.deepEqual(await metadata('p'), {})
    })

    test('metadata survives a restart of envd', async () => {
      await sandbox.files.write('kept', 'x', { metadata: { a: '1' } })
      await shell('sudo kill -9 $(pgrep -P 1 -f envd.js)').catch(() => {})
      const metadataAfter = await waitFor(
        'envd',
        () => metadata('kept').catch(() => undefined),
        polling,
      )
      assert.deepEqual(metadataAfter, { a: '1' })
    })

    test('a recursive watch covers new and moved folders', async () => {
      const { files } = sandbox
      await files.makeDir('tree/old')
      const events: string[] = []
      const sizes = new Map<string, number | undefined>()
      const handle = await files.watchDir(
        'tree',
        ({ type, name, entry }) => {
          events.push(`${type} ${name}`)
          if (entry) sizes.set(name, entry.size)
        },
        { recursive: true, includeEntry: true },
      )
      const waitForEvent = (line: string) => waitFor(line, () => events.includes(line), polling)
      await files.write('tree/old/a', 'hello')
      await waitForEvent('write old/a')
      assert.equal(sizes.get('old/a'), 5)
      await shell('cd tree && mkdir -p new/deep && echo 1 > new/deep/b && mv new moved')
      await waitForEvent('create moved')
      await shell('cd tree && echo 2 > moved/deep/c && rm -r old')
      await waitForEvent('remove old')
      await handle.stop()
      assert.equal(events.filter((line) => /^create (new|moved).deep.b$/.test(line)).length, 1)
      for (const line of ['rename new', 'create moved/deep/c', 'remove old/a']) {
        assert.ok(events.includes(line), `${line} is not in ${events.join(', ')}`)
      }
    })

    test('ten thousand files are listed', async () => {
      await shell('mkdir /tmp/many && cd /tmp/many && seq 10000 | xargs touch')
      assert.equal((await sandbox.files.list('/tmp/many')).length, 10_000)
    })
  })
}
