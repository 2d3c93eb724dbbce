import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { openSync, rmSync, writeFileSync } from 'node:fs'
import { mkdir, mkdtemp, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import type { TestContext } from 'node:test'
import { splitPath } from '../../domain/sandboxes/changes.ts'
import { changedDirectory } from './changed-directory.ts'
import { listChanges } from './list-changes.ts'
import type { ListBounds } from './list-changes.ts'
import { readChange } from './read-change.ts'

const bounds: ListBounds = {
  limit: 1000,
  maxVisited: 10_000,
  maxNames: 10_000,
  maxDepth: 20,
  maxPathBytes: 4096,
  maxBytes: 1_000_000,
  isTimeUp: () => false,
}

test('lists what was added, modified and deleted below the template', async (t) => {
  const tree = await makeTree(t)
  await tree.lower('etc/passwd', 'root\n')
  await tree.lower('etc/motd', 'hello\n')
  await tree.lower('usr/unchanged', '')
  await tree.upper('etc/passwd', 'root\nuser\n')
  await tree.upper('home/user/new.txt', 'new')
  tree.whiteout('etc/motd')
  assert.deepEqual(
    tree
      .list()
      .changes.map(({ path, kind, type, sizeBytes }) => [path.toString(), kind, type, sizeBytes]),
    [
      ['/etc/motd', 'deleted', 'file', 6],
      ['/etc/passwd', 'modified', 'file', 10],
      ['/home', 'added', 'directory', 0],
      ['/home/user', 'added', 'directory', 0],
      ['/home/user/new.txt', 'added', 'file', 3],
    ],
  )
})

test('a directory that replaces another one shows the files of the old one as deleted', async (t) => {
  const tree = await makeTree(t)
  await tree.lower('data/old', 'old')
  await tree.lower('data/both', 'old')
  await tree.upper('data/both', 'new')
  tree.opaque('data')
  assert.deepEqual(tree.kinds(), ['/data/both modified', '/data/old deleted'])
})

test('whiteouts and opaque directories of upper layers of the template hide what is below', async (t) => {
  const tree = await makeTree(t, ['bottom', 'top'])
  await tree.write('bottom', 'a/gone', '1')
  await tree.write('bottom', 'b/hidden', '1')
  await tree.write('top', 'a/other', '1')
  await tree.write('top', 'b/other', '1')
  tree.whiteoutIn('top', 'a/gone')
  tree.opaqueIn('top', 'b')
  await tree.upper('a/gone', 'again')
  await tree.upper('b/hidden', 'again')
  tree.whiteout('a/never')
  assert.deepEqual(tree.kinds(), ['/a/gone added', '/b/hidden added'])
})

test('pages continue where the last one ended, and have every change once', async (t) => {
  const tree = await makeTree(t)
  for (const name of ['a/1', 'a/2', 'a/b/3', 'a/b/4', 'a.txt', 'b']) await tree.upper(name, '')
  const all = tree.kinds()
  assert.equal(all.length, 8)
  for (const limit of [1, 2, 3, 5]) {
    const seen: string[] = []
    let after: Buffer | undefined
    do {
      const page = tree.list('/', { after, limit })
      seen.push(...page.changes.map(({ path, kind }) => `${path.toString()} ${kind}`))
      after = page.next
    } while (after)
    assert.deepEqual(seen, all, `pages of ${limit}`)
  }
})

test('a path limits the list to it and to what is below', async (t) => {
  const tree = await makeTree(t)
  for (const name of ['a/1', 'a/b/3', 'ab', 'c']) await tree.upper(name, '')
  assert.deepEqual(tree.kinds('/a/b'), ['/a/b added', '/a/b/3 added'])
  assert.deepEqual(tree.kinds('/a/1'), ['/a/1 added'])
  assert.deepEqual(tree.kinds('/a/none'), [])
  const first = tree.list('/a', { limit: 2 })
  assert.deepEqual(
    tree.list('/a', { after: first.next }).changes.map(({ path }) => path.toString()),
    ['/a/b', '/a/b/3'],
  )
})

test('follows no symbolic link, neither in a name nor in a path', async (t) => {
  const tree = await makeTree(t)
  await writeFile(join(tree.dir, 'secret'), 'of the host')
  await symlink(tree.dir, join(tree.dir, 'upper', 'out'))
  await symlink('/etc/passwd', join(tree.dir, 'upper', 'passwd'))
  await symlink(tree.dir, join(tree.dir, 'layer', 'below'))
  assert.deepEqual(tree.kinds(), ['/out added', '/passwd added'])
  assert.deepEqual(tree.kinds('/out/secret'), [])
  assert.equal(tree.read('/out/secret'), undefined)
  assert.equal(tree.read('/below/secret'), undefined)
  const link = tree.read('/passwd')
  assert.equal(link?.after?.type, 'symlink')
  assert.equal(link?.after?.content.toString(), '/etc/passwd')
})

test('names that are not text, deep trees and large directories stay bounded', async (t) => {
  const tree = await makeTree(t)
  const odd = Buffer.concat([Buffer.from(join(tree.dir, 'upper') + '/'), Buffer.from([0xff, 0x0a])])
  await writeFile(odd, '')
  assert.deepEqual(tree.list().changes[0]?.path, Buffer.from([0x2f, 0xff, 0x0a]))
  await mkdir(join(tree.dir, 'upper', ...Array.from({ length: 30 }, () => 'd')), {
    recursive: true,
  })
  const deep = tree.list()
  assert.equal(deep.changes.length, 21)
  assert.equal(deep.isComplete, false)
  for (let n = 0; n < 12; n += 1) await tree.upper(`many/${n}`, '')
  const many = tree.list('/', {}, { maxNames: 0 })
  assert.equal(many.changes.length, 0)
  assert.equal(many.isComplete, false)
})

test('all directories of a request share one bound for the names that are read', async (t) => {
  const tree = await makeTree(t)
  for (let n = 0; n < 4; n += 1) await tree.upper(`a/b/c/${n}`, '')
  for (let n = 0; n < 4; n += 1) await tree.upper(`d/${n}`, '')
  const all = tree.kinds()
  // Too few for one page: the next page reads on in the directory that was left.
  assert.deepEqual(pagesOf(tree, 8), { seen: all, isComplete: true })
  // The levels above use it up: what is below is left out, and the rest is listed.
  const { seen, isComplete } = pagesOf(tree, 3)
  assert.deepEqual(
    seen.map((line) => line.replace(/\d/, 'N')),
    ['/a added', '/a/b added', '/d added', '/d/N added'],
  )
  assert.equal(isComplete, false)
})

test('the names of the layers below an opaque directory count too', async (t) => {
  const tree = await makeTree(t, ['bottom', 'top'])
  for (const layer of ['bottom', 'top']) {
    for (let n = 0; n < 4; n += 1) await tree.write(layer, `data/${layer}${n}`, '')
  }
  await tree.upper('data/new', '')
  tree.opaque('data')
  assert.equal(pagesOf(tree, 10).seen.length, 9)
  const { seen, isComplete } = pagesOf(tree, 6)
  assert.equal(seen.length, 5)
  assert.equal(isComplete, false)
})

test('a large directory is read no further once the time is up', async (t) => {
  const tree = await makeTree(t)
  await mkdir(join(tree.dir, 'upper/many'))
  for (let n = 0; n < 2100; n += 1) writeFileSync(join(tree.dir, 'upper/many', `${n}`), '')
  let checks = 0
  const after = Buffer.from('/many')
  const page = tree.list('/', { after }, { isTimeUp: () => (checks += 1) > 0, limit: 10_000 })
  assert.equal(page.isComplete, false)
  assert.deepEqual([page.changes.length, checks], [1, 2])
})

test('a page ends after the time and the number of entries, and the next one continues', async (t) => {
  const tree = await makeTree(t)
  for (const name of ['1', '2', '3']) {
    await tree.lower(`same/${name}`, '')
    await mkdir(join(tree.dir, 'upper', 'same'), { recursive: true })
  }
  for (const name of ['a', 'b', 'c']) await tree.upper(name, '')
  const slow = tree.list('/', {}, { isTimeUp: () => true })
  assert.deepEqual(
    slow.changes.map(({ path }) => path.toString()),
    ['/a'],
  )
  const next = tree.list('/', { after: slow.next }, { maxVisited: 1 })
  assert.deepEqual(
    next.changes.map(({ path }) => path.toString()),
    ['/b'],
  )
  assert.deepEqual(next.next, Buffer.from('/b'))
})

test('reads both sides of a change up to the limit', async (t) => {
  const tree = await makeTree(t)
  await tree.lower('a', 'before')
  await tree.upper('a', 'after it all')
  await tree.upper('new', 'x')
  await tree.lower('gone', 'y')
  tree.whiteout('gone')
  await tree.lower('same', '')
  const read = tree.read('/a', 6)
  assert.equal(read?.before?.content.toString(), 'before')
  assert.equal(read?.before?.isTruncated, false)
  assert.equal(read?.after?.content.toString(), 'after ')
  assert.equal(read?.after?.isTruncated, true)
  assert.equal(read?.after?.sizeBytes, 12)
  assert.equal(tree.read('/new')?.before, undefined)
  assert.equal(tree.read('/gone')?.after, undefined)
  assert.equal(tree.read('/gone')?.before?.content.toString(), 'y')
  assert.equal(tree.read('/same'), undefined)
  assert.equal(tree.read('/'), undefined)
})

test('a named pipe is neither waited for nor read', async (t) => {
  const tree = await makeTree(t)
  execFileSync('mkfifo', [join(tree.dir, 'upper', 'pipe')])
  assert.equal(tree.read('/pipe')?.after?.type, 'other')
})

test('refuses paths that are not absolute, leave the root or have no end', () => {
  for (const path of [
    'etc',
    '',
    '/a/../b',
    `/${'a'.repeat(300)}`,
    `/${'a/'.repeat(3000)}`,
    '/a\0',
  ]) {
    assert.throws(() => splitPath(Buffer.from(path)), { reason: 'bad_path' }, path)
  }
  assert.deepEqual(splitPath(Buffer.from('//etc/./x/')).map(String), ['etc', 'x'])
})

/** Lists page by page, each with this bound for names. */
function pagesOf(tree: Awaited<ReturnType<typeof makeTree>>, maxNames: number) {
  const seen: string[] = []
  let isComplete = true
  let after: Buffer | undefined
  do {
    const page = tree.list('/', { after }, { maxNames })
    seen.push(...page.changes.map(({ path, kind }) => `${path.toString()} ${kind}`))
    isComplete &&= page.isComplete
    after = page.next
  } while (after)
  return { seen, isComplete }
}

async function makeTree(t: TestContext, layers: readonly string[] = ['layer']) {
  const dir = await mkdtemp(join(tmpdir(), 'atoll-changes-'))
  t.after(() => rmSync(dir, { recursive: true }))
  for (const name of ['upper', ...layers]) await mkdir(join(dir, name))
  const open = () =>
    changedDirectory(
      openSync(join(dir, 'upper'), 'r'),
      layers.toReversed().map((layer) => openSync(join(dir, layer), 'r')),
      false,
    )
  async function write(layer: string, name: string, content: string) {
    const path = join(dir, layer, name)
    await mkdir(join(path, '..'), { recursive: true })
    await writeFile(path, content)
  }
  const whiteoutIn = (layer: string, name: string) =>
    execFileSync('mknod', [join(dir, layer, name), 'c', '0', '0'])
  const opaqueIn = (layer: string, name: string) =>
    execFileSync(process.execPath, ['-e', setOpaque, join(dir, layer, name)], {
      cwd: import.meta.dirname,
    })
  function list(
    path = '/',
    { after, limit }: { after?: Buffer | undefined; limit?: number } = {},
    own: Partial<ListBounds> = {},
  ) {
    using root = open()
    const request = { path: splitPath(Buffer.from(path)), after: after && splitPath(after) }
    return listChanges(root, request, { ...bounds, ...own, ...(limit && { limit }) })
  }
  return {
    dir,
    write,
    lower: (name: string, content: string) => write('layer', name, content),
    upper: (name: string, content: string) => write('upper', name, content),
    whiteoutIn,
    opaqueIn,
    whiteout: (name: string) => whiteoutIn('upper', name),
    opaque: (name: string) => opaqueIn('upper', name),
    list,
    kinds: (path?: string) =>
      list(path).changes.map((each) => `${each.path.toString()} ${each.kind}`),
    read(path: string, maxBytes = 1000) {
      using root = open()
      return readChange(root, splitPath(Buffer.from(path)), maxBytes)
    },
  }
}

/** overlayfs keeps this attribute on the host, where only root may set it. */
const setOpaque = `
const libc = require('koffi').load('libc.so.6')
const set = libc.func('int setxattr(const char *path, const char *name, const char *value, size_t size, int flags)')
if (set(process.argv[1], 'trusted.overlay.opaque', 'y', 1, 0) !== 0) process.exit(1)
`
