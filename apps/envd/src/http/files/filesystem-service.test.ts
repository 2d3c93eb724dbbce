import assert from 'node:assert/strict'
import {
  chmod,
  chown,
  lstat,
  mkdir,
  mkdtemp,
  readdir,
  rm,
  stat,
  symlink,
  utimes,
  writeFile,
} from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { run } from '@atoll/kit/run'
import { callFiles, filesOf } from '../../testing/filesystem-client.ts'
import { runEnvd } from '../../testing/running-envd.ts'

const home = await mkdtemp(join(tmpdir(), 'atoll-home-'))
const passwd = join(home, 'passwd')
const group = join(home, 'group')
await writeFile(passwd, `root:x:0:0::${home}:/bin/sh\nann:x:1234:2345::${home}/ann:/bin/sh\n`)
await writeFile(group, 'root:x:0:\nstaff:x:2345:ann\n')

async function setup(base = tmpdir()) {
  const folder = await mkdtemp(join(base, 'atoll-files-'))
  const envd = await runEnvd({ accounts: { passwd, group } })
  return {
    envd,
    folder,
    files: filesOf(envd),
    call: (method: string, message: unknown, headers = {}) =>
      callFiles(envd, method, message, headers),
    async [Symbol.asyncDispose]() {
      assert.deepEqual(envd.unexpectedErrors, [])
      await envd[Symbol.asyncDispose]()
      await rm(folder, { recursive: true })
    },
  }
}

for (const base of [tmpdir(), '/dev/shm']) {
  test(`Stat on ${base} as raw JSON has sizes as strings and omits zero values`, async () => {
    await using it = await setup(base)
    const { folder, call } = it
    const path = join(folder, 'a.txt')
    await writeFile(path, 'hello')
    await chmod(path, 0o640)
    await chown(path, 1234, 2345)
    await utimes(path, 1_700_000_000.25, 1_700_000_000.25)
    assert.deepEqual((await call('Stat', { path })).body, {
      entry: {
        name: 'a.txt',
        type: 'FILE_TYPE_FILE',
        path,
        size: '5',
        mode: 0o640,
        permissions: '-rw-r-----',
        owner: 'ann',
        group: 'staff',
        modifiedTime: '2023-11-14T22:13:20.250Z',
      },
    })
  })
}

test('Stat of a symlink has the type and mode of the target, and its own other fields', async () => {
  await using it = await setup()
  const { folder, files } = it
  await writeFile(join(folder, 'file'), 'content', { mode: 0o600 })
  await mkdir(join(folder, 'dir'))
  await symlink('file', join(folder, 'one'))
  await symlink('one', join(folder, 'two'))
  await symlink('dir', join(folder, 'to-dir'))
  await symlink('nowhere', join(folder, 'broken'))
  await symlink('loop', join(folder, 'loop'))
  const seen = async (name: string) => {
    const { entry } = await files.stat({ path: join(folder, name) })
    return [entry?.type, entry?.mode, entry?.size, entry?.permissions, entry?.symlinkTarget]
  }
  assert.deepEqual(await seen('two'), [1, 0o600, 3n, 'Lrwxrwxrwx', join(folder, 'file')])
  assert.deepEqual(await seen('to-dir'), [2, 0o755, 3n, 'Lrwxrwxrwx', join(folder, 'dir')])
  assert.deepEqual(await seen('broken'), [0, 0, 7n, 'Lrwxrwxrwx', join(folder, 'broken')])
  assert.deepEqual(await seen('loop'), [0, 0, 4n, 'Lrwxrwxrwx', join(folder, 'loop')])
})

test('Stat handles devices, pipes, sticky folders and owners without a name', async () => {
  await using it = await setup()
  const { folder, files } = it
  await run('mkfifo', ['-m', '600', join(folder, 'pipe')])
  await mkdir(join(folder, 'sticky'))
  await chmod(join(folder, 'sticky'), 0o1777)
  await chown(join(folder, 'sticky'), 4242, 4343)
  const seen = async (path: string) => {
    const { entry } = await files.stat({ path })
    return [entry?.type, entry?.mode, entry?.permissions, entry?.owner, entry?.group, entry?.name]
  }
  assert.deepEqual(await seen('/dev/null'), [0, 0o666, 'Dcrw-rw-rw-', 'root', 'root', 'null'])
  assert.deepEqual(await seen(join(folder, 'pipe')), [
    0,
    0o600,
    'prw-------',
    'root',
    'root',
    'pipe',
  ])
  const sticky = [2, 0o777, 'dtrwxrwxrwx', '4242', '4343', 'sticky']
  assert.deepEqual(await seen(join(folder, 'sticky')), sticky)
  assert.equal((await files.stat({ path: '/' })).entry?.name, '/')
})

test("paths may be empty, start with ~, or be relative to the user's home", async () => {
  await using it = await setup()
  const { envd, files } = it
  await mkdir(join(home, 'ann/sub'), { recursive: true })
  const at = async (path: string) => (await files.stat({ path }, envd.as('ann'))).entry?.path
  assert.equal(await at(''), join(home, 'ann'))
  assert.equal(await at('~'), join(home, 'ann'))
  assert.equal(await at('~/sub'), join(home, 'ann/sub'))
  assert.equal(await at('sub/../sub'), join(home, 'ann/sub'))
  assert.equal((await files.stat({ path: '' })).entry?.path, home)
})

test('MakeDir creates missing parents for the acting user, and fails if the folder exists', async () => {
  await using it = await setup()
  const { envd, folder, files, call } = it
  const path = join(folder, 'x/y/z')
  const made = await files.makeDir({ path }, envd.as('ann'))
  assert.deepEqual([made.entry?.permissions, made.entry?.owner], ['drwxr-xr-x', 'ann'])
  assert.deepEqual([(await stat(join(folder, 'x'))).uid, (await stat(folder)).uid], [1234, 0])
  const again = await call('MakeDir', { path })
  assert.deepEqual([again.status, again.body.code], [409, 'already_exists'])
})

test('Move creates parent folders, replaces files, and keeps metadata and owner', async () => {
  await using it = await setup()
  const { envd, folder, files } = it
  await writeFile(join(folder, 'a'), 'a')
  await writeFile(join(folder, 'b'), 'b')
  await run('python3', [
    '-c',
    'import os,sys; os.setxattr(sys.argv[1], "user.e2b.k", b"v")',
    `${folder}/a`,
  ])
  const destination = join(folder, 'deep/er/c')
  const { entry } = await files.move({ source: join(folder, 'a'), destination }, envd.as('ann'))
  assert.deepEqual([entry?.path, entry?.owner, entry?.metadata], [destination, 'root', { k: 'v' }])
  assert.equal((await stat(join(folder, 'deep'))).uid, 1234)
  await files.move({ source: join(folder, 'b'), destination })
  assert.deepEqual((await files.stat({ path: destination })).entry?.metadata, {})
  await files.move({ source: join(folder, 'deep'), destination: join(folder, 'moved') })
  assert.deepEqual(await readdir(join(folder, 'moved/er')), ['c'])
})

test('Move of a missing source still creates the parents of the destination', async () => {
  await using it = await setup()
  const { folder, call } = it
  const answer = await call('Move', { source: `${folder}/no`, destination: `${folder}/new/x` })
  assert.deepEqual([answer.status, answer.body.code], [404, 'not_found'])
  assert.ok((await stat(join(folder, 'new'))).isDirectory())
})

test('Remove deletes trees with symlinks and unusual names, and ignores missing paths', async () => {
  await using it = await setup()
  const { folder, files } = it
  const path = join(folder, 'tree')
  await mkdir(join(path, 'a/b/c'), { recursive: true })
  await mkdir(join(folder, 'outside'))
  await writeFile(join(folder, 'outside/keep'), '')
  await symlink(join(folder, 'outside'), join(path, 'a/link'))
  for (let n = 0; n < 500; n += 1) await writeFile(join(path, `a/b/${n}`), '')
  await writeFile(Buffer.from(`${path}/a/\xff\xfe`, 'latin1'), '')
  await mkdir(Buffer.from(`${path}/a/\xffdir`, 'latin1'))
  await writeFile(Buffer.from(`${path}/a/\xffdir/\xfa`, 'latin1'), '')
  await files.remove({ path })
  assert.deepEqual(await readdir(folder), ['outside'])
  await files.remove({ path })
  await symlink(join(folder, 'outside'), path)
  await files.remove({ path })
  assert.deepEqual(await readdir(join(folder, 'outside')), ['keep'])
})

test('ListDir sorts by name, lists folders before their contents, and honors the depth', async () => {
  await using it = await setup()
  const { folder, files } = it
  await mkdir(join(folder, 'b/c/d'), { recursive: true })
  for (const name of ['a', 'b.txt', 'B', 'ä', 'b/z', 'b/c/e'])
    await writeFile(join(folder, name), '')
  await symlink('b', join(folder, 'link'))
  const names = async (path: string, depth: number) =>
    (await files.listDir({ path, depth })).entries.map((entry) =>
      entry.path.slice(folder.length + 1),
    )
  const first = ['B', 'a', 'b', 'b.txt', 'link', 'ä']
  assert.deepEqual(await names(folder, 0), first)
  assert.deepEqual(await names(`${folder}/`, 1), first)
  const second = ['B', 'a', 'b', 'b/c', 'b/z', 'b.txt', 'link', 'ä']
  assert.deepEqual(await names(folder, 2), second)
  const all = ['B', 'a', 'b', 'b/c', 'b/c/d', 'b/c/e', 'b/z', 'b.txt', 'link', 'ä']
  assert.deepEqual(await names(folder, 4_000_000_000), all)
  assert.deepEqual(await names(join(folder, 'link'), 1), ['link/c', 'link/z'])
  assert.deepEqual(await names(join(folder, 'b/c/d'), 1), [])
})

test('names that are not UTF-8 are listed with replacement characters', async () => {
  await using it = await setup()
  const { folder, files } = it
  await writeFile(Buffer.from(`${folder}/\xffx`, 'latin1'), 'abc')
  const { entries } = await files.listDir({ path: folder })
  assert.deepEqual(
    entries.map(({ name, size }) => [name, size]),
    [['\ufffdx', 3n]],
  )
})

test('listing ten thousand files does not block other calls', async () => {
  await using it = await setup('/dev/shm')
  const { folder, files } = it
  await run('sh', ['-c', `cd ${folder} && seq 10000 | xargs touch`])
  const listing = files.listDir({ path: folder })
  const others = await Promise.all(Array.from({ length: 20 }, () => files.stat({ path: folder })))
  assert.equal(others.length, 20)
  const { entries } = await listing
  assert.equal(entries.length, 10_000)
  assert.deepEqual(entries[9999]?.name, '9999')
})

test('a folder with too many entries is rejected before it is read completely', async () => {
  await using it = await setup('/dev/shm')
  const { folder, call } = it
  await run('sh', ['-c', `cd ${folder} && seq 50001 | xargs touch`])
  const answer = await call('ListDir', { path: folder })
  assert.deepEqual([answer.status, answer.body.code], [429, 'resource_exhausted'])
  assert.match(answer.body.message, /more than 50000 entries/)
})

test('folders that change during a listing cause no error', async () => {
  await using it = await setup()
  const { folder, files } = it
  const churn = run('sh', [
    '-c',
    `cd ${folder} && for i in $(seq 30); do mkdir -p d/e f; touch d/a d/e/b f/c; rm -r d f; done`,
  ])
  let isDone = false
  void churn.finally(() => (isDone = true))
  while (!isDone) await files.listDir({ path: folder, depth: 5 })
  await churn
})

test('early Python clients get only the fields they know', async () => {
  await using it = await setup()
  const { folder, call } = it
  await mkdir(join(folder, 'd'))
  const answer = await call('ListDir', { path: folder }, { 'user-agent': 'connect-python' })
  assert.deepEqual(answer.body, {
    entries: [{ name: 'd', type: 'FILE_TYPE_DIRECTORY', path: join(folder, 'd') }],
  })
  assert.equal(answer.headers.get('x-e2b-legacy-sdk'), 'true')
})

const long = `/${'x'.repeat(5000)}`
const deep = '/x'.repeat(2500)
const bad: [string, string, (folder: string) => object, string][] = [
  ['Stat of nothing', 'Stat', (at) => ({ path: `${at}/no` }), 'not_found'],
  ['Stat below a file', 'Stat', (at) => ({ path: `${at}/file/x` }), 'internal'],
  ['Stat through a loop', 'Stat', (at) => ({ path: `${at}/loop/x` }), 'failed_precondition'],
  ['Stat with NUL', 'Stat', (at) => ({ path: `${at}/a\0b` }), 'invalid_argument'],
  ['Stat of a long name', 'Stat', () => ({ path: long }), 'invalid_argument'],
  ['Stat of a long path', 'Stat', () => ({ path: deep }), 'invalid_argument'],
  ['Stat in a home of others', 'Stat', () => ({ path: '~root/x' }), 'invalid_argument'],
  ['MakeDir of a file', 'MakeDir', (at) => ({ path: `${at}/file` }), 'invalid_argument'],
  ['MakeDir below a file', 'MakeDir', (at) => ({ path: `${at}/file/x` }), 'internal'],
  ['MakeDir far below a file', 'MakeDir', (at) => ({ path: `${at}/file/x/y` }), 'internal'],
  ['MakeDir of a folder', 'MakeDir', (at) => ({ path: `${at}/dir/` }), 'already_exists'],
  ['MakeDir of ..', 'MakeDir', (at) => ({ path: `${at}/dir/..` }), 'already_exists'],
  ['MakeDir with NUL', 'MakeDir', (at) => ({ path: `${at}/\0` }), 'invalid_argument'],
  ['MakeDir of a long name', 'MakeDir', () => ({ path: long }), 'invalid_argument'],
  ['MakeDir of a long path', 'MakeDir', () => ({ path: deep }), 'invalid_argument'],
  ['MakeDir in a loop', 'MakeDir', (at) => ({ path: `${at}/loop/x` }), 'failed_precondition'],
  [
    'Move of nothing',
    'Move',
    (at) => ({ source: `${at}/no`, destination: `${at}/x` }),
    'not_found',
  ],
  [
    'Move onto a full folder',
    'Move',
    (at) => ({ source: `${at}/dir`, destination: `${at}/full` }),
    'internal',
  ],
  [
    'Move to another device',
    'Move',
    (at) => ({ source: `${at}/file`, destination: `/dev/shm/atoll-never-${process.pid}` }),
    'internal',
  ],
  [
    'Move below a file',
    'Move',
    (at) => ({ source: `${at}/dir`, destination: `${at}/file/x` }),
    'internal',
  ],
  [
    'Move with NUL',
    'Move',
    (at) => ({ source: `${at}/file`, destination: `${at}/\0` }),
    'invalid_argument',
  ],
  ['ListDir of nothing', 'ListDir', (at) => ({ path: `${at}/no` }), 'not_found'],
  ['ListDir of a file', 'ListDir', (at) => ({ path: `${at}/file` }), 'invalid_argument'],
  ['ListDir of a loop', 'ListDir', (at) => ({ path: `${at}/loop` }), 'failed_precondition'],
  ['ListDir of a broken link', 'ListDir', (at) => ({ path: `${at}/broken` }), 'not_found'],
  ['ListDir with NUL', 'ListDir', (at) => ({ path: `${at}\0` }), 'invalid_argument'],
  ['ListDir of a long path', 'ListDir', () => ({ path: deep }), 'invalid_argument'],
  ['ListDir of a negative depth', 'ListDir', (at) => ({ path: at, depth: -1 }), 'invalid_argument'],
  ['Remove with NUL', 'Remove', (at) => ({ path: `${at}/\0` }), 'invalid_argument'],
  ['Remove of a long path', 'Remove', () => ({ path: deep }), 'invalid_argument'],
  ['Remove below a file', 'Remove', (at) => ({ path: `${at}/file/x` }), 'internal'],
  ['Remove of ~root', 'Remove', () => ({ path: '~root' }), 'invalid_argument'],
  ['a path that is a number', 'Stat', () => ({ path: 5 }), 'invalid_argument'],
]

test('invalid calls are rejected with the right code', async (t) => {
  await using it = await setup()
  const { folder, call } = it
  await writeFile(join(folder, 'file'), '')
  await mkdir(join(folder, 'dir'))
  await mkdir(join(folder, 'full/x'), { recursive: true })
  await symlink('loop', join(folder, 'loop'))
  await symlink('nowhere', join(folder, 'broken'))
  for (const [what, method, message, code] of bad) {
    await t.test(what, async () => {
      const { body } = await call(method, message(folder))
      assert.equal(body.code, code)
      assert.ok(body.message.length > 0 && body.message.length < 6000)
    })
  }
  assert.ok((await lstat(join(folder, 'file'))).isFile())
})

test('trees deeper than the path limit are listed up to the limit, and removed', async () => {
  await using it = await setup()
  const { folder, files } = it
  const path = join(folder, 'top')
  const nest = 'for i in $(seq 60); do mkdir "$0"; touch "$0/file"; cd -P "$0"; done'
  await mkdir(path)
  await run('bash', ['-c', `cd "$1"; ${nest}`, 'x'.repeat(200), path])
  const { entries } = await files.listDir({ path, depth: 100 })
  assert.ok(entries.length > 30 && entries.length < 60, String(entries.length))
  await files.remove({ path })
  assert.deepEqual(await readdir(folder), [])
})

test('Move names the path that is wrong', async () => {
  await using it = await setup()
  const { folder, call } = it
  const there = join(folder, 'there')
  await writeFile(there, '')
  const wrong = [`${folder}/\0`, `${folder}/${'x'.repeat(300)}`]
  for (const path of wrong) {
    for (const message of [
      { source: path, destination: `${folder}/new` },
      { source: there, destination: path },
    ]) {
      const { body } = await call('Move', message)
      assert.ok(body.message.startsWith(`'${path.slice(0, 200)}`), body.message)
    }
  }
})

test('an unknown user is rejected before any change', async () => {
  await using it = await setup()
  const { envd, folder, call } = it
  const answer = await call('MakeDir', { path: join(folder, 'x') }, envd.as('ghost').headers)
  assert.deepEqual([answer.status, answer.body.code], [401, 'unauthenticated'])
  assert.deepEqual(await readdir(folder), [])
})

test.after(() => rm(home, { recursive: true }))
