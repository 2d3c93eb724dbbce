import assert from 'node:assert/strict'
import {
  chmod,
  mkdir,
  mkdtempDisposable,
  readFile,
  readdir,
  rename,
  stat,
  writeFile,
} from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { ensureKeyFile, keyFileOf, openKeyFile } from './key-file.ts'

const makeFolder = () => mkdtempDisposable(join(tmpdir(), 'atoll-keys-'))

test('the first start creates a file for root only, and later starts have the same key', async () => {
  await using folder = await makeFolder()
  const file = keyFileOf(folder.path, undefined)
  const first = await ensureKeyFile(file)
  assert.equal((await stat(file.path)).mode & 0o777, 0o600)
  using write = first.beginWrite()
  const sealed = write.seal('value', 'a')
  assert.equal((await ensureKeyFile(file)).open(sealed, 'a'), 'value')
})

test('opening a data directory without a key file changes nothing', async () => {
  await using folder = await makeFolder()
  assert.ok((await openKeyFile(keyFileOf(folder.path, undefined))).isNew)
  assert.deepEqual(await readdir(folder.path), [])
})

test('a supplied file may hold comments and older keys; the first key is the current one', async () => {
  await using folder = await makeFolder()
  const path = join(folder.path, 'keys')
  const [one, two] = ['1'.repeat(64), 'AB'.repeat(32)]
  await writeFile(path, `# ours\n\n${one}\n  ${two}\n${one}\n`, { mode: 0o600 })
  const { keyIds, currentId } = await ensureKeyFile(keyFileOf('/nowhere', path))
  assert.equal(keyIds.length, 2)
  await writeFile(path, `${one}\n`, { mode: 0o600 })
  assert.equal((await ensureKeyFile(keyFileOf('/nowhere', path))).currentId, currentId)
})

const secretPart = 'c0ffee'
for (const [what, content] of Object.entries({
  'no keys': '# only a comment\n',
  'a short key': `${secretPart}\n`,
  'a key with other characters': `${secretPart}${'z'.repeat(58)}\n`,
})) {
  test(`a file with ${what} is refused, without repeating it`, async () => {
    await using folder = await makeFolder()
    const file = keyFileOf(folder.path, undefined)
    await writeFile(file.path, content, { mode: 0o600 })
    await assert.rejects(ensureKeyFile(file), (error: Error) => {
      assert.match(error.message, /64 hexadecimal digits/)
      assert.ok(!error.message.includes(secretPart))
      return true
    })
    assert.equal(await readFile(file.path, 'utf8'), content)
  })
}

test('a file that other users can read, and a supplied file that is missing, are refused', async () => {
  await using folder = await makeFolder()
  const file = keyFileOf(folder.path, undefined)
  await ensureKeyFile(file)
  await chmod(file.path, 0o640)
  await assert.rejects(ensureKeyFile(file), /chmod 600/)
  const missing = keyFileOf(folder.path, join(folder.path, 'missing'))
  await assert.rejects(ensureKeyFile(missing), { reason: 'encryption_key_file' })
})

test('a new key is in the file before it is used, and older keys stay until they are dropped', async () => {
  await using folder = await makeFolder()
  const file = keyFileOf(folder.path, undefined)
  const ring = await ensureKeyFile(file)
  const before = ring.beginWrite()
  const old = before.seal('old', 'a')
  const added = await ring.add()
  assert.equal(ring.currentId, added)
  const again = await ensureKeyFile(file)
  assert.deepEqual(again.keyIds, ring.keyIds)
  assert.equal(again.open(old, 'a'), 'old')
  assert.deepEqual([ring.isStale(old), ring.isStale('plain')], [true, true])

  let isSettled = false
  const settled = ring.settled().then(() => (isSettled = true))
  await Promise.resolve()
  assert.equal(isSettled, false)
  before[Symbol.dispose]()
  await settled

  await ring.dropOlder()
  assert.equal(ring.open(old, 'a'), 'old', 'a read that is under way still succeeds')
  const later = await ensureKeyFile(file)
  assert.deepEqual(later.keyIds, [added])
  assert.throws(() => later.open(old, 'a'), { reason: 'encryption_key_missing' })
})

test('a key file that cannot be written leaves the keys as they were', async () => {
  await using folder = await makeFolder()
  const inner = join(folder.path, 'inner')
  await mkdir(inner)
  const file = keyFileOf(inner, undefined)
  const ring = await ensureKeyFile(file)
  const { currentId } = ring
  await rename(inner, join(folder.path, 'moved'))
  await assert.rejects(ring.add(), { reason: 'encryption_key_file' })
  assert.deepEqual(ring.keyIds, [currentId])
})
