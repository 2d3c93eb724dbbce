import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { CommandResult, OnLine } from '../../domain/sandboxes/commands.ts'
import { waitUntilReady } from './ready-check.ts'

const endpoint = { address: '10.0.0.1', accessToken: undefined }
const command = { command: 'check', args: [], user: 'user', cwd: undefined, envVars: {} }

type Attempt = (onLine: OnLine, signal: AbortSignal) => Promise<CommandResult>

function check(attempt: Attempt, options: { limitMs?: number; signal?: AbortSignal } = {}) {
  const lines: string[] = []
  const { limitMs = 60_000, signal = new AbortController().signal } = options
  const ready = waitUntilReady(
    { run: (_endpoint, _command, { onLine, signal: until }) => attempt(onLine, until) },
    endpoint,
    {
      ...{ command, shown: 'check it', limitMs, signal },
      onLine: async (stream, line) => void lines.push(`${stream} ${line}`),
    },
  )
  return { ready, lines }
}

test('only the output of the attempt that succeeds is kept', async () => {
  let attempts = 0
  const { ready, lines } = check(async (onLine) => {
    attempts += 1
    await onLine('stderr', `attempt ${attempts}`)
    return { exitCode: attempts === 3 ? 0 : 1 }
  })
  await ready
  assert.deepEqual(lines, ['stderr attempt 3'])
})

test('a silent success does not show the output of a failed attempt', async () => {
  let attempts = 0
  const { ready, lines } = check(async (onLine) => {
    attempts += 1
    if (attempts === 1) await onLine('stderr', 'connection refused')
    return { exitCode: attempts === 2 ? 0 : 1 }
  })
  await ready
  assert.deepEqual(lines, [])
})

test('a command that never succeeds fails with its exit status and its last output', async () => {
  const { ready, lines } = check(
    async (onLine) => {
      for (let line = 1; line <= 30; line += 1) await onLine('stdout', `line ${line}`)
      return { exitCode: 7 }
    },
    { limitMs: 200 },
  )
  await assert.rejects(ready, {
    reason: 'not_ready',
    message: /within 0\.2 seconds: check it did not succeed \(\d+ attempts, .* exit status 7\)/,
  })
  assert.deepEqual([lines.length, lines.at(-1)], [20, 'stdout line 30'])
})

test('a command that does not end is stopped at the limit, with its output so far', async () => {
  const { ready, lines } = check(
    async (onLine, signal) => {
      await onLine('stdout', 'still starting')
      return new Promise((_, reject) => {
        signal.addEventListener('abort', () => reject(signal.reason))
      })
    },
    { limitMs: 200 },
  )
  await assert.rejects(ready, { message: /the first attempt did not end/ })
  assert.deepEqual(lines, ['stdout still starting'])
})

test('a canceled check is no timeout', async () => {
  const leaving = new AbortController()
  const { ready } = check(
    async () => {
      leaving.abort()
      return { exitCode: 1 }
    },
    { signal: leaving.signal },
  )
  await assert.rejects(ready, { name: 'AbortError' })
})
