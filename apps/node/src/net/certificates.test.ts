import assert from 'node:assert/strict'
import { mkdtempDisposable, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { createAuthority } from '@atoll/egress/authority'
import { readCertificates } from './certificates.ts'

async function read(text: string): Promise<string[]> {
  await using folder = await mkdtempDisposable(join(tmpdir(), 'atoll-certificates-'))
  const path = join(folder.path, 'ca.pem')
  await writeFile(path, text)
  return await readCertificates(path)
}

test('all certificates of a file are read; text between them is ignored', async () => {
  const [first, second] = [createAuthority().certificate, createAuthority().certificate]
  const found = await read(`# one\n${first}\n# and another\n${second}`)
  assert.deepEqual(found, [first.trim(), second.trim()])
})

for (const [content, text] of [
  ['no content', ''],
  ['a key', createAuthority().key],
  ['an invalid certificate', '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----'],
] as const) {
  test(`a file with ${content} is refused`, async () => {
    await assert.rejects(
      read(text),
      /ATOLL_EGRESS_CA_FILE: .* must contain certificates in PEM format/,
    )
  })
}

test('the error for a missing file names its path', async () => {
  await assert.rejects(
    readCertificates('/no/such'),
    /ATOLL_EGRESS_CA_FILE: \/no\/such cannot be read/,
  )
})
