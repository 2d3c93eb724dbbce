import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { mkdir, mkdtempDisposable, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { buffer } from 'node:stream/consumers'
import { test } from 'node:test'
import { run } from '@atoll/kit/run'
import { listTree } from './local-tree.ts'
import { createTarReader } from './read.ts'
import type { ReadEntry } from './read.ts'
import { tarChunks, tarSize } from './write.ts'

async function read(archive: Buffer, chunkSize = archive.length) {
  const found: (ReadEntry & { content: string })[] = []
  const reader = createTarReader({
    begin: async (entry) => void found.push({ ...entry, content: '' }),
    async data(bytes) {
      const last = found.at(-1)
      if (last) last.content += Buffer.from(bytes).toString()
    },
    end: async () => {},
  })
  for (let at = 0; at < archive.length; at += chunkSize) {
    await reader.write(archive.subarray(at, at + chunkSize))
  }
  reader.finish()
  return found
}

async function sample() {
  const folder = await mkdtempDisposable(join(tmpdir(), 'atoll-tar-'))
  const longName = 'ü'.repeat(100)
  await mkdir(join(folder.path, 'sub'))
  await writeFile(join(folder.path, 'sub', longName), 'x'.repeat(1000))
  await writeFile(join(folder.path, 'empty'), '')
  await symlink(`sub/${longName}`, join(folder.path, 'link'))
  return { folder, longName, [Symbol.asyncDispose]: () => folder[Symbol.asyncDispose]() }
}

test('tar reads what is written, and the size is known before', async () => {
  await using made = await sample()
  const entries = (await listTree(made.folder.path)).filter(({ path }) => path !== '')
  const archive = Buffer.concat(await Array.fromAsync(tarChunks(entries)))
  assert.equal(archive.length, tarSize(entries))
  const file = join(made.folder.path, 'archive.tar')
  await writeFile(file, archive)
  const listed = await run('tar', ['-tf', file], {
    env: { ...process.env, LC_ALL: 'C.UTF-8' },
  })
  assert.deepEqual(listed.trim().split('\n'), ['empty', 'link', 'sub/', `sub/${made.longName}`])
  const found = await read(archive, 7)
  assert.deepEqual(
    found.map(({ path, kind, content, linkTarget }) => [path, kind, content.length, linkTarget]),
    [
      ['empty', 'file', 0, ''],
      ['link', 'symlink', 0, `sub/${made.longName}`],
      ['sub/', 'directory', 0, ''],
      [`sub/${made.longName}`, 'file', 1000, ''],
    ],
  )
})

for (const format of ['gnu', 'pax', 'ustar']) {
  test(`an archive in ${format} format is read`, async () => {
    await using made = await sample()
    const names = format === 'ustar' ? ['empty'] : ['.']
    const child = spawn('tar', ['-c', `--format=${format}`, '-C', made.folder.path, ...names])
    const found = await read(await buffer(child.stdout), 100)
    const files = found.filter(({ kind }) => kind === 'file').map(({ path }) => path)
    const long = `./sub/${made.longName}`
    assert.deepEqual(
      files.toSorted(),
      (format === 'ustar' ? ['empty'] : ['./empty', long]).toSorted(),
    )
  })
}

test('damaged, incomplete and oversized archives are refused', async () => {
  const whole = Buffer.concat(
    await Array.fromAsync(tarChunks([{ path: 'a', kind: 'directory', mode: 0o755, sizeBytes: 0 }])),
  )
  await assert.rejects(read(whole.subarray(0, 512)), /too early/)
  const damaged = Buffer.from(whole)
  damaged[0] = 0x62
  await assert.rejects(read(damaged), /header is damaged/)
  await assert.rejects(read(Buffer.alloc(5000, 'x')), /cannot be read/)
})
