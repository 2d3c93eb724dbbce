import assert from 'node:assert/strict'
import { closeSync, fstatSync, openSync } from 'node:fs'
import {
  mkdir,
  mkdtemp,
  readFile,
  readdir,
  rename,
  rm,
  stat,
  symlink,
  writeFile,
} from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import type { TestContext } from 'node:test'
import { run } from '@atoll/kit/run'
import { openLogFile } from './log-file.ts'

async function setup(t: TestContext) {
  const dir = await mkdtemp(join(tmpdir(), 'atoll-log-'))
  t.after(() => rm(dir, { recursive: true, force: true }))
  const folder = join(dir, 'logs')
  const path = join(folder, 'server.log')
  const open = (limitBytes?: number) => {
    const log = openLogFile(path, limitBytes)
    t.after(() => log.close())
    return log
  }
  return { dir, folder, path, open, read: () => readFile(path, 'utf8') }
}

test('a log is appended to, and past its limit makes way once', async (t) => {
  const { folder, path, open, read } = await setup(t)
  const first = open(20)
  first.write('1234567890\n')
  first.close()
  const log = open(20)
  for (const line of ['second\n', 'third is longer\n', 'fourth is longer\n']) log.write(line)
  log.close()
  assert.deepEqual(
    [await read(), await readFile(`${path}.1`, 'utf8')],
    ['fourth is longer\n', 'third is longer\n'],
  )
  assert.equal((await readdir(folder)).length, 2)
  assert.equal((await stat(path)).mode & 0o777, 0o600)
})

for (const limitBytes of [10, 1000]) {
  test(`a log of ${limitBytes} bytes that is deleted or moved away is begun anew`, async (t) => {
    const { folder, path, open, read } = await setup(t)
    const log = open(limitBytes)
    log.write('first\n')
    await rm(path)
    log.write('second\n')
    assert.equal(await read(), 'second\n')
    await rename(path, `${path}.kept`)
    log.write('third\n')
    assert.equal(await read(), 'third\n')
    await rm(folder, { recursive: true })
    log.write('fourth\n')
    assert.equal(await read(), 'fourth\n')
  })
}

test('a log whose folder cannot be used counts the lines that it drops', async (t) => {
  const { folder, open, read } = await setup(t)
  const log = open()
  log.write('first\n')
  await rename(folder, `${folder}.away`)
  await writeFile(folder, 'not a folder')
  for (let line = 0; line < 3; line += 1) log.write('lost\n')
  await rm(folder)
  await rename(`${folder}.away`, folder)
  log.write('last\n')
  const [first, notice, last] = (await read()).split('\n')
  assert.deepEqual([first, toDropped(notice), last], ['first', [3, 'ENOTDIR'], 'last'])
})

test('a data folder that is gone is not made again by its log', async (t) => {
  const { dir, open } = await setup(t)
  const log = open()
  await rm(dir, { recursive: true })
  log.write('lost\n')
  await assert.rejects(stat(dir), { code: 'ENOENT' })
})

test('a log that cannot be moved aside at its limit grows no further', async (t) => {
  const { path, open, read } = await setup(t)
  const log = open(10)
  await mkdir(join(`${path}.1`, 'in the way'), { recursive: true })
  for (let line = 0; line < 100; line += 1) log.write('12345678\n')
  assert.equal(await read(), '12345678\n')
  await rm(`${path}.1`, { recursive: true })
  log.write('12345678\n')
  assert.equal(await read(), '12345678\n')
  assert.deepEqual(toDropped(await readFile(`${path}.1`, 'utf8')), [99, 'EISDIR'])
})

test('a full disk drops lines, and the log says how many once there is room', async (t) => {
  const { path, open, read } = await setup(t)
  const log = open()
  await rm(path)
  await symlink('/dev/full', path)
  for (let line = 0; line < 5; line += 1) log.write('lost\n')
  await rm(path)
  log.write('last\n')
  const [notice, last] = (await read()).split('\n')
  assert.deepEqual([toDropped(notice), last], [[5, 'ENOSPC'], 'last'])
})

const isRoot = process.getuid?.() === 0

test(
  'a line that a full disk cut short does not run into the next',
  { skip: !isRoot },
  async (t) => {
    const { folder, open, read } = await setup(t)
    open().close()
    await run('mount', ['-t', 'tmpfs', '-o', 'size=8k', 'tmpfs', folder])
    await using mounted = new AsyncDisposableStack()
    mounted.defer(async () => void (await run('umount', ['-l', folder])))
    const log = open()
    await writeFile(join(folder, 'ballast'), 'x'.repeat(4096))
    log.write(`${'a'.repeat(5000)}\n`)
    log.write('lost\n')
    await rm(join(folder, 'ballast'))
    log.write('last\n')
    const [torn, notice, last] = (await read()).split('\n')
    assert.deepEqual([torn, toDropped(notice), last], ['a'.repeat(4096), [2, 'ENOSPC'], 'last'])
  },
)

test('a log whose file vanishes never closes a descriptor of another file', async (t) => {
  const { folder, path, open } = await setup(t)
  const log = open(10)
  const others: { descriptor: number; inode: number }[] = []
  t.after(() => others.forEach(({ descriptor }) => closeSync(descriptor)))
  const openOther = async () => {
    const other = join(folder, '..', `other-${others.length}`)
    const descriptor = openSync(other, 'w')
    others.push({ descriptor, inode: fstatSync(descriptor).ino })
  }
  const breakages = [
    () => rm(path, { force: true }),
    () => rm(folder, { recursive: true, force: true }),
    () => writeFile(folder, 'in the way').catch(() => {}),
    () => rm(folder, { recursive: true, force: true }),
    async () => {
      await rm(`${path}.1`, { force: true })
      await mkdir(join(`${path}.1`, 'in the way'), { recursive: true })
    },
    () => rm(`${path}.1`, { recursive: true, force: true }),
  ]
  for (const breakage of breakages) {
    await breakage()
    for (let line = 0; line < 5; line += 1) {
      log.write('a line that is longer than the limit\n')
      await openOther()
    }
  }
  log.close()
  log.close()
  for (const { descriptor, inode } of others) assert.equal(fstatSync(descriptor).ino, inode)
})

function toDropped(notice = ''): unknown[] {
  const { event, lines, reason } = JSON.parse(notice)
  assert.equal(event, 'log.dropped')
  return [lines, reason]
}
