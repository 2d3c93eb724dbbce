import assert from 'node:assert/strict'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { decodeManifest, encodeManifest, readManifest } from './manifest.ts'
import type { Manifest } from './manifest.ts'

const manifest: Manifest = {
  createdAt: '2026-11-18T04:00:47.281Z',
  release: '0.3.0',
  architecture: 'x64',
  store: 'sqlite',
  sandboxes: 1,
  snapshots: 2,
  templates: 3,
  memoryReleases: ['runsc version release-1'],
  archives: [{ path: 'cells/abc', bytes: 10, sha256: 'a'.repeat(64) }],
}

test('a manifest reads back as it was written', () => {
  assert.deepEqual(decodeManifest(encodeManifest(manifest), '/b'), manifest)
})

test('a changed manifest is refused', () => {
  const text = encodeManifest(manifest).replace('"bytes": 10', '"bytes": 11')
  assert.throws(() => decodeManifest(text, '/b'), { reason: 'backup_damaged', message: /checksum/ })
})

test('a manifest of a newer format is refused, whatever else it holds', () => {
  const text = JSON.stringify({ format: 2, manifest: { unheard: 'of' } })
  assert.throws(() => decodeManifest(text, '/b'), { reason: 'backup_newer', message: /format 2/ })
})

for (const text of ['', 'null', '[]', '{}', '{"format":"1"}', '{"format":1']) {
  test(`the manifest ${JSON.stringify(text)} is refused`, () => {
    assert.throws(() => decodeManifest(text, '/b'), { reason: 'backup_damaged' })
  })
}

for (const path of [
  '../etc',
  'cells/../../etc',
  '/etc',
  'cells/',
  'cells/..',
  'logs',
  'cells/a/b',
]) {
  test(`an archive ${path} is refused: it would leave the data directory`, () => {
    const hostile = { ...manifest, archives: [{ path, bytes: 1, sha256: 'a'.repeat(64) }] }
    assert.throws(() => decodeManifest(encodeManifest(hostile), '/b'), { reason: 'backup_damaged' })
  })
}

test('a folder without a manifest is not a backup', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'atoll-manifest-'))
  try {
    await writeFile(join(folder, 'settings.tar'), '')
    await assert.rejects(readManifest(folder), { reason: 'no_backup' })
  } finally {
    await rm(folder, { recursive: true })
  }
})
