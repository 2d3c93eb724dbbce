import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import {
  lstat,
  mkdir,
  mkdtemp,
  open,
  readFile,
  rm,
  symlink,
  utimes,
  writeFile,
} from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import type { TestContext } from 'node:test'
import { packFolder, unpackFolder } from './archive.ts'

async function setup(t: TestContext) {
  const dir = await mkdtemp(join(tmpdir(), 'atoll-archive-'))
  t.after(() => rm(dir, { recursive: true, force: true }))
  const [from, to] = [join(dir, 'from'), join(dir, 'to')]
  await mkdir(from)
  await mkdir(to)
  return { from, to }
}

test('times, modes, links, whiteouts and opaque folders are the same after a journey', async (t) => {
  const { from, to } = await setup(t)
  await mkdir(join(from, 'folder'), { mode: 0o750 })
  await writeFile(join(from, 'folder/file'), 'text', { mode: 0o4755 })
  await utimes(join(from, 'folder/file'), 1_600_000_000.25, 1_600_000_000.25)
  await symlink('/etc/passwd', join(from, 'link'))
  execFileSync('mknod', [join(from, 'deleted'), 'c', '0', '0'])
  await unpackFolder(packFolder(from), to)
  const describe = (dir: string) =>
    execFileSync('find', ['.', '-printf', '%P %y %m %U %G %s %T@ %l\n'], { cwd: dir }).toString()
  const lines = (dir: string) => describe(dir).split('\n').toSorted()
  assert.deepEqual(lines(to), lines(from))
  assert.ok((await lstat(join(to, 'deleted'))).isCharacterDevice())
})

test('a sparse disk stays sparse and has the same bytes', async (t) => {
  const { from, to } = await setup(t)
  const disk = await open(join(from, 'disk.img'), 'w')
  await disk.truncate(64 * 1024 * 1024)
  await disk.write('here', 40 * 1024 * 1024)
  await disk.close()
  await unpackFolder(packFolder(from), to)
  const copy = join(to, 'disk.img')
  const { size, blocks } = await lstat(copy)
  assert.equal(size, 64 * 1024 * 1024)
  assert.ok(blocks * 512 < 1024 * 1024)
  assert.ok((await readFile(copy)).equals(await readFile(join(from, 'disk.img'))))
})

test('a folder that has gone, and a damaged archive, are errors', async (t) => {
  const { from, to } = await setup(t)
  await assert.rejects(unpackFolder(packFolder(join(from, 'missing')), to), /tar could not/)
  await writeFile(join(from, 'file'), Buffer.alloc(100_000, 'x'))
  const pieces = []
  for await (const piece of packFolder(from)) pieces.push(piece)
  const cut = Buffer.concat(pieces).subarray(0, -20)
  await assert.rejects(
    unpackFolder(
      (async function* half() {
        yield cut
      })(),
      to,
    ),
  )
})

test('a source that fails half way is an error', async (t) => {
  const { to } = await setup(t)
  const failing = async function* fail(): AsyncGenerator<Buffer> {
    yield Buffer.alloc(0)
    throw new Error('connection reset')
  }
  await assert.rejects(unpackFolder(failing(), to), /connection reset/)
})

test('a reader that leaves early ends tar', async (t) => {
  const { from } = await setup(t)
  await writeFile(join(from, 'file'), Buffer.alloc(8 * 1024 * 1024, 'x'))
  for await (const _piece of packFolder(from)) break
})
