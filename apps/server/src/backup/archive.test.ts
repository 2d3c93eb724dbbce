import assert from 'node:assert/strict'
import {
  appendFile,
  link,
  mkdir,
  mkdtemp,
  open,
  readFile,
  readlink,
  rm,
  stat,
  symlink,
  utimes,
  writeFile,
} from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, suite, test } from 'node:test'
import { packFolder, sumOf, unpackFolder } from './archive.ts'

const never = new AbortController().signal

suite('archives of a backup', () => {
  let folder = ''
  const at = (name: string) => join(folder, name)

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'atoll-archive-'))
  })
  after(() => rm(folder, { recursive: true }))

  test('content, modes, times, links and holes survive', async () => {
    await mkdir(at('from/memory'), { recursive: true })
    const disk = await open(at('from/disk.img'), 'w', 0o600)
    const sizeBytes = 256 * 1024 * 1024
    await disk.truncate(sizeBytes)
    await disk.write('written at the end', sizeBytes - 4096)
    await disk.close()
    await writeFile(at('from/memory/pages'), 'pages', { mode: 0o640 })
    await utimes(at('from/memory/pages'), 1_700_000_000.25, 1_700_000_000.25)
    await symlink('/etc/../outside', at('from/link'))

    const sum = await packFolder(at('from'), at('from.tar'), never)
    assert.ok(sum.bytes < 1024 * 1024, `the archive has the holes: ${sum.bytes} bytes`)
    assert.deepEqual(await sumOf(at('from.tar')), sum)
    await unpackFolder(at('from.tar'), at('to'))

    const copy = await stat(at('to/disk.img'))
    assert.equal(copy.size, sizeBytes)
    assert.ok(copy.blocks * 512 < 1024 * 1024, `the copy has no holes: ${copy.blocks} blocks`)
    const read = await open(at('to/disk.img'))
    const { buffer } = await read.read(Buffer.alloc(18), 0, 18, sizeBytes - 4096)
    await read.close()
    assert.equal(buffer.toString(), 'written at the end')
    const pages = await stat(at('to/memory/pages'))
    assert.deepEqual([pages.mode & 0o777, pages.mtimeMs], [0o640, 1_700_000_000_250])
    assert.equal(await readFile(at('to/memory/pages'), 'utf8'), 'pages')
    assert.equal(await readlink(at('to/link')), '/etc/../outside')
  })

  test('a file that gets another name meanwhile is archived, one that is written to fails the archive', async () => {
    await mkdir(at('linked'))
    const file = at('linked/file')
    await writeFile(file, Buffer.alloc(64 * 1024 * 1024, 'x'))
    await utimes(file, 1_700_000_000, 1_700_000_000)
    // Each chunk of the archive passes this process, so that changes come between them.
    const packWhile = async (name: string, change: () => Promise<unknown>) => {
      const done = new AbortController()
      const packed = packFolder(at('linked'), at(name), never).finally(() => done.abort())
      packed.catch(() => {})
      while (!done.signal.aborted) await change()
      return packed
    }
    const sum = await packWhile('linked.tar', async () => {
      await link(file, at('second-name'))
      await rm(at('second-name'))
    })
    assert.deepEqual(await sumOf(at('linked.tar')), sum)
    const written = packWhile('written.tar', () => appendFile(file, 'more'))
    await assert.rejects(written, /changed as we read it/)
  })

  test('a folder that cannot be read fails the archive', async () => {
    await assert.rejects(packFolder(at('missing'), at('missing.tar'), never), /tar could not read/)
  })

  test('an existing archive is not overwritten', async () => {
    await mkdir(at('small'))
    await writeFile(at('small.tar'), 'mine')
    await assert.rejects(packFolder(at('small'), at('small.tar'), never), { code: 'EEXIST' })
    assert.equal(await readFile(at('small.tar'), 'utf8'), 'mine')
  })

  test('an aborted archive ends with the reason', async () => {
    await mkdir(at('aborted'))
    const reason = new Error('given up')
    await assert.rejects(packFolder(at('aborted'), at('aborted.tar'), AbortSignal.abort(reason)))
  })
})
