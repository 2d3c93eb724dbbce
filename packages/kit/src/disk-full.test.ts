import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { test } from 'node:test'
import { isOutOfSpace } from './disk-full.ts'
import { run } from './run.ts'

test('an ENOSPC of this process, also as a cause, is out of space', async () => {
  const error = await writeFile('/dev/full', 'text').catch((thrown: unknown) => thrown)
  assert.equal(isOutOfSpace(error), true)
  assert.equal(isOutOfSpace(new Error('The record was not written', { cause: error })), true)
  assert.equal(isOutOfSpace(new Error('The record was not written')), false)
})

test('coreutils say "No space left on device" for a full disk (disk-full.ts)', async () => {
  const error = await run('cp', ['/etc/os-release', '/dev/full']).catch((thrown: unknown) => thrown)
  assert.equal(isOutOfSpace(error), true)
})

test('runsc says it in lower case, somewhere in its log', () => {
  const log = `{"msg":"error setting up FS: mkdir /proc/fs/root/.atoll: no space left on device","level":"error"}`
  const cause = new Error(`runsc run: exit 128: ${log}`)
  assert.ok(isOutOfSpace(new Error('runsc could not start the sandbox', { cause })))
})
