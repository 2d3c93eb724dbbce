import assert from 'node:assert/strict'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { runProgram } from '../sim/run-cli.ts'

test('a local CA is created once, with the steps to trust it', async (t) => {
  const dataDir = await mkdtemp(join(tmpdir(), 'atoll-cli-'))
  t.after(() => rm(dataDir, { recursive: true }))
  const env = { ATOLL_DATA_DIR: dataDir, ATOLL_DOMAIN: 'atoll.localhost:8443' }
  const file = join(dataDir, 'tls/ca.crt')
  const first = await runProgram(['tls', 'local'], env)
  assert.deepEqual([first.code, first.stderr], [0, ''])
  assert.match(first.stdout, /^created a local CA for atoll\.localhost\n/)
  for (const part of ['update-ca-certificates', 'NODE_EXTRA_CA_CERTS=', 'Chromium', file]) {
    assert.ok(first.stdout.includes(part), part)
  }
  assert.ok(first.stdout.includes('export E2B_DOMAIN=atoll.localhost:8443'))
  const certificate = await readFile(file, 'utf8')
  const second = await runProgram(['tls', 'local'], env)
  assert.match(second.stdout, /^there is a local CA for atoll\.localhost\n/)
  assert.equal(await readFile(file, 'utf8'), certificate)
})

test('a local CA without a domain is refused', async () => {
  const { code, stderr } = await runProgram(['tls', 'local'], {})
  assert.equal(code, 1)
  assert.match(stderr, /needs a domain: set ATOLL_DOMAIN/)
})
