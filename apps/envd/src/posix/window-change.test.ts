import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { test } from 'node:test'
import { waitFor } from '@atoll/kit/wait'
import { notifyWindowChange } from './window-change.ts'

const watcher = `trap 'echo told; exit' WINCH; echo ready; while :; do sleep 0.02; done`

test('without a known foreground group, every group of the session is signaled', async (t) => {
  // There is no terminal, so Linux reports no foreground group either. `set -m` puts the second watcher into its
  // own group.
  const child = spawn('bash', ['-c', `set -m; (${watcher}) & ${watcher}`], {
    detached: true,
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  t.after(() => child.kill('SIGKILL'))
  let said = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => (said += text))
  const ended = once(child, 'close')
  await waitFor('both to listen', () => said === 'ready\nready\n')
  await notifyWindowChange(child.pid ?? 0)
  await ended
  assert.equal(said, 'ready\nready\ntold\ntold\n')
})

test('a session that has ended is ignored', async () => {
  const child = spawn('true', { detached: true, stdio: 'ignore' })
  await once(child, 'exit')
  await notifyWindowChange(child.pid ?? 0)
})
