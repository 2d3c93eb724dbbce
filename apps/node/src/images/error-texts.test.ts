import assert from 'node:assert/strict'
import { test } from 'node:test'
import { tryRun } from '@atoll/kit/run'

test('skopeo reports an error as msg="…" (skopeo-error.ts)', async () => {
  // No server listens on port 1.
  const { code, stderr } = await tryRun('skopeo', ['inspect', 'docker://127.0.0.1:1/image'])
  assert.notEqual(code, 0)
  assert.match(stderr, /msg="(?:[^"\\]|\\.)*refused/)
})

test('tar says "No space left" when a disk is full (skopeo.ts)', async () => {
  const { code, stderr } = await tryRun('tar', ['--create', '--file=/dev/full', '/etc/os-release'])
  assert.notEqual(code, 0)
  assert.match(stderr, /No space left/)
})
