import assert from 'node:assert/strict'
import { mkdir, mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, suite, test } from 'node:test'
import { copySettings, findSettings } from './settings-files.ts'

suite('small files of a backup', () => {
  let dataDir = ''

  beforeEach(async () => {
    dataDir = await mkdtemp(join(tmpdir(), 'atoll-settings-'))
    await writeFile(join(dataDir, 'credentials.json'), '{}', { mode: 0o600 })
    await mkdir(join(dataDir, 'tls/acme'), { recursive: true })
    await writeFile(join(dataDir, 'tls/acme/account.pem'), 'key', { mode: 0o600 })
  })
  afterEach(() => rm(dataDir, { recursive: true }))

  test('known files and folders are copied with their modes, caches and logs are not', async () => {
    await writeFile(join(dataDir, 'ballast'), 'x')
    await writeFile(join(dataDir, 'api-id'), 'x')
    await writeFile(join(dataDir, 'node.json.0a1b2c3d.tmp'), 'x')
    await mkdir(join(dataDir, 'logs'))
    const found = await findSettings(dataDir)
    assert.deepEqual(found.paths, ['credentials.json', 'tls/acme/account.pem'])
    assert.deepEqual(found.unknown, [])
    const to = join(dataDir, '.backup', 'x')
    await copySettings(dataDir, found, to)
    assert.equal(await readFile(join(to, 'tls/acme/account.pem'), 'utf8'), 'key')
    assert.equal((await stat(join(to, 'credentials.json'))).mode & 0o777, 0o600)
  })

  test('unknown small files are copied and listed, unknown folders and large files only listed', async () => {
    await writeFile(join(dataDir, 'keys.new'), 'ring')
    await writeFile(join(dataDir, 'huge'), Buffer.alloc(1024 * 1024 + 1))
    await mkdir(join(dataDir, 'things'))
    const { paths, unknown } = await findSettings(dataDir)
    assert.ok(paths.includes('keys.new'))
    assert.deepEqual(unknown, [
      { name: 'huge', isCopied: false },
      { name: 'keys.new', isCopied: true },
      { name: 'things', isCopied: false },
    ])
  })

  test('a changed key changes the fingerprint', async () => {
    const before = await findSettings(dataDir)
    assert.equal((await findSettings(dataDir)).fingerprint, before.fingerprint)
    await writeFile(join(dataDir, 'tls/acme/account.pem'), 'other')
    assert.notEqual((await findSettings(dataDir)).fingerprint, before.fingerprint)
  })
})
