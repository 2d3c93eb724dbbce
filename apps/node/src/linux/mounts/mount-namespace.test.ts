import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { openMountNamespace, removeMountNamespace } from './mount-namespace.ts'

test('a namespace is removed when the last process in its folder has ended', async (t) => {
  const parent = await mkdtemp('/run/atoll-test-')
  t.after(() => rm(parent, { recursive: true, force: true }))
  const runDir = join(parent, 'run')
  await openMountNamespace(runDir)
  const user = spawn('sleep', ['600'], { cwd: runDir, stdio: 'ignore' })
  t.after(() => user.kill('SIGKILL'))
  await new Promise((resolve) => user.once('spawn', resolve))
  const removed = removeMountNamespace(runDir)
  await sleep(200)
  assert.ok(existsSync(runDir))
  user.kill('SIGKILL')
  await removed
  assert.equal(existsSync(runDir), false)
})
