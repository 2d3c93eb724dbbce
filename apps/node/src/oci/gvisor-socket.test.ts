import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdtemp, open, rm } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import type { TestContext } from 'node:test'
import { callSandbox } from './gvisor-socket.ts'

// The runtime contract makes the same calls to a real kernel, with descriptors.

async function serve(t: TestContext, answer: string | undefined) {
  const dir = await mkdtemp(join(tmpdir(), 'atoll-socket-'))
  const path = join(dir, 'runsc-c1.sock')
  const requests: string[] = []
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    t.after(() => socket.destroy())
    socket.on('error', () => {}) // the caller may leave before the end
    socket.setEncoding('utf8').on('data', (text: string) => requests.push(text))
    socket.on('end', () => answer !== undefined && socket.end(answer))
  })
  t.after(async () => {
    server.close()
    await rm(dir, { recursive: true })
  })
  await once(server.listen(path), 'listening')
  return { path, requests }
}

test('a call is one JSON text, and ends when the kernel reports success', async (t) => {
  const { path, requests } = await serve(t, '{"success":true,"err":"","result":{}}')
  await using file = await open(path.replace('.sock', '.img'), 'wx+')
  const arg = { Resume: true }
  await callSandbox(path, { method: 'containerManager.Checkpoint', arg, descriptors: [file.fd] })
  assert.deepEqual(requests, [JSON.stringify({ method: 'containerManager.Checkpoint', arg })])
})

for (const [name, answer, message] of [
  ['an error', '{"success":false,"err":"encoding error: x"}', /encoding error: x/],
  ['nothing', '', /ended without an answer/],
  ['something else', '[1', /ended without an answer/],
  ['an endless text', 'x'.repeat(3 * 1024 * 1024), /too long/],
] as const) {
  test(`a kernel that answers with ${name} is a fault`, async (t) => {
    const { path } = await serve(t, answer)
    const call = callSandbox(path, { method: 'containerManager.Pause' })
    await assert.rejects(call, { reason: 'runtime_failed', message })
  })
}

test('a kernel that does not answer is given up after the time limit', async (t) => {
  const { path } = await serve(t, undefined)
  const call = callSandbox(path, { method: 'containerManager.Pause', timeoutMs: 50 })
  await assert.rejects(call, { reason: 'runtime_failed', message: /did not finish in time/ })
})

test('a kernel that is gone is a fault at once', async () => {
  const call = callSandbox('/nonexistent/runsc-c1.sock', { method: 'containerManager.Pause' })
  await assert.rejects(call, { reason: 'runtime_failed', message: /does not answer \(errno 2\)/ })
  const long = callSandbox(`/${'x'.repeat(200)}`, { method: 'containerManager.Pause' })
  await assert.rejects(long, { reason: 'runtime_failed', message: /too long/ })
})
