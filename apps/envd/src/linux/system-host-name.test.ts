import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { chmod, mkdir, mkdtemp, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises'
import { hostname, tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import type { TestContext } from 'node:test'
import { createHostNameSetter } from './system-host-name.ts'

const hosts = (name: string) => `127.0.0.1 localhost\n127.0.1.1 ${name}\n::1 localhost\n`

async function setup(t: TestContext) {
  const folder = await mkdtemp(join(tmpdir(), 'atoll-names-'))
  t.after(() => rm(folder, { recursive: true, force: true }))
  const given: string[] = []
  const setHostName = (name: Uint8Array, length: number) => {
    given.push(Buffer.from(name).toString('utf8', 0, length))
    return -1 // EPERM
  }
  const at = (name: string) => join(folder, name)
  return {
    given,
    at,
    folder,
    setHostName: createHostNameSetter(() => ({ setHostName }), folder),
    read: () => Promise.all(['hostname', 'hosts'].map((name) => readFile(at(name), 'utf8'))),
  }
}

test('the kernel and the files get the new name, and the files keep owner and mode', async (t) => {
  const { setHostName, given, at, read } = await setup(t)
  await writeFile(at('hostname'), 'before\n')
  await writeFile(at('hosts'), hosts('before'))
  await chmod(at('hosts'), 0o600)
  const { ino } = await stat(at('hosts'))
  await setHostName('i1', undefined)
  assert.deepEqual(given, ['i1'])
  assert.deepEqual(await read(), ['i1\n', hosts('i1')])
  const after = await stat(at('hosts'))
  assert.deepEqual([after.ino, after.mode & 0o777], [ino, 0o600])
})

for (const [where, oldName, kept] of [
  ['in the settings', 'before', 'other\n'],
  ['in the file of the name alone', undefined, 'before\n'],
] as const) {
  test(`the old name is found ${where}`, async (t) => {
    const { setHostName, at, read } = await setup(t)
    await writeFile(at('hostname'), kept)
    await writeFile(at('hosts'), hosts('before'))
    await setHostName('i1', oldName)
    assert.deepEqual(await read(), ['i1\n', hosts('i1')])
  })
}

test('the old name is found in the kernel', async (t) => {
  const { setHostName, at, read } = await setup(t)
  await writeFile(at('hostname'), 'i1\n')
  await writeFile(at('hosts'), hosts(hostname()))
  await setHostName('i1', undefined)
  assert.deepEqual(await read(), ['i1\n', hosts('i1')])
})

test('a system that already has the name is not changed', async (t) => {
  const { setHostName, given, at, read } = await setup(t)
  await writeFile(at('hostname'), hostname())
  await writeFile(at('hosts'), '127.0.1.1 mine\n')
  await setHostName(hostname(), 'before')
  assert.deepEqual(given, [])
  assert.deepEqual(await read(), [`${hostname()}\n`, '127.0.1.1 mine\n'])
})

test('an invalid host name is ignored', async (t) => {
  const { setHostName, given, at, read } = await setup(t)
  await writeFile(at('hostname'), 'before\n')
  await writeFile(at('hosts'), hosts('before'))
  await setHostName('i1\n10.0.0.1 evil', undefined)
  assert.deepEqual([given, await read()], [[], ['before\n', hosts('before')]])
})

test('symlinks are not followed, and missing files are not created', async (t) => {
  const { setHostName, at } = await setup(t)
  await writeFile(at('target'), hosts('before'))
  await symlink(at('target'), at('hosts'))
  await setHostName('i1', 'before')
  assert.equal(await readFile(at('target'), 'utf8'), hosts('before'))
  await assert.rejects(stat(at('hostname')), { code: 'ENOENT' })
})

test('pipes, folders, devices and huge files do not block', async (t) => {
  const { setHostName, at } = await setup(t)
  execFileSync('mkfifo', [at('hostname')])
  await mkdir(at('hosts'))
  await setHostName('i1', 'before')
  await rm(at('hosts'), { recursive: true })
  execFileSync('mknod', [at('hosts'), 'c', '1', '5']) // same device as /dev/zero
  await setHostName('i1', 'before')
  await rm(at('hosts'))
  execFileSync('truncate', ['--size=1T', at('hosts')])
  await setHostName('i1', 'before')
  assert.equal((await stat(at('hosts'))).blocks, 0)
})

test('a folder that is a symlink or has mounts inside is not changed', async (t) => {
  const { setHostName, at, folder } = await setup(t)
  await writeFile(at('hosts'), hosts('before'))
  await symlink(folder, at('link'))
  await createHostNameSetter(() => ({ setHostName: () => 0 }), at('link'))('i1', 'before')
  {
    using _mounted = mountMemory(at('hosts'), { bind: true })
    await setHostName('i1', 'before')
  }
  assert.equal(await readFile(at('hosts'), 'utf8'), hosts('before'))
})

function mountMemory(path: string, { bind = false } = {}): Disposable {
  const options = bind ? ['--bind', path, path] : ['-t', 'tmpfs', '-o', 'size=8k', 'atoll', path]
  execFileSync('mount', options)
  return { [Symbol.dispose]: () => void execFileSync('umount', [path]) }
}

test('on a full disk the old text stays complete', async (t) => {
  const { folder: disk } = await setup(t)
  using _mounted = mountMemory(disk)
  const folder = join(disk, 'etc')
  await mkdir(folder)
  const at = (name: string) => join(folder, name)
  const setHostName = createHostNameSetter(() => ({ setHostName: () => 0 }), folder)
  const full = `${hosts('before')}#${'x'.repeat(4096)}`.slice(0, 4096)
  await writeFile(at('hosts'), full)
  await writeFile(at('filler'), 'x'.repeat(4096))
  await assert.rejects(writeFile(at('more'), 'x'), { code: 'ENOSPC' })
  await setHostName('a-longer-name', 'before')
  assert.equal(await readFile(at('hosts'), 'utf8'), full)
})
