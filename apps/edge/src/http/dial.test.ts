import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { connect, createServer } from 'node:net'
import type { OnReadOpts, Server } from 'node:net'
import { test } from 'node:test'
import type { TestContext } from 'node:test'
import { waitFor } from '@atoll/kit/wait'
import { dial } from './dial.ts'

const { signal } = new AbortController()

test('a port that drops SYN packets is dialed once, until the time limit', async (t) => {
  const port = await silentPort(t)
  const attempts = countAttempts()
  const socket = await dial('127.0.0.1', port, { signal, limitMs: 300, onread: attempts.onread })
  assert.deepEqual([socket, attempts.count()], [undefined, 1])
})

test('a closed port is retried for a moment', async () => {
  const server = createServer()
  const port = await listen(server)
  await close(server)
  const attempts = countAttempts()
  const socket = await dial('127.0.0.1', port, { signal, onread: attempts.onread })
  assert.deepEqual([socket, attempts.count()], [undefined, 5])
})

test('a program that starts to listen after the first attempt is reached', async (t) => {
  const first = createServer()
  const port = await listen(first)
  await close(first)
  const server = createServer((accepted) => accepted.destroy())
  let attempts = 0
  const onread = () => {
    attempts += 1
    if (attempts === 2) server.listen(port, '127.0.0.1')
    return ignored
  }
  const socket = await dial('127.0.0.1', port, { signal, onread })
  t.after(() => {
    socket?.destroy()
    return close(server)
  })
  assert.ok(socket)
  assert.ok(attempts >= 2)
})

test('a client that disconnects ends the attempt', async (t) => {
  const port = await silentPort(t)
  const leaving = new AbortController()
  const dialing = dial('127.0.0.1', port, { signal: leaving.signal })
  leaving.abort()
  assert.equal(await dialing, undefined)
})

/** Opens a port with a stopped process and a full backlog, so that the kernel drops every SYN. */
async function silentPort(t: TestContext): Promise<number> {
  const program = `
    const server = require('node:net').createServer().listen({ port: 0, host: '127.0.0.1', backlog: 1 }, () => {
      console.log(server.address().port)
    })`
  const child = spawn(process.execPath, ['-e', program], { stdio: ['ignore', 'pipe', 'inherit'] })
  t.after(async () => {
    child.kill('SIGKILL')
    if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
  })
  const [line]: Buffer[] = await once(child.stdout, 'data')
  const port = Number(line)
  child.kill('SIGSTOP')
  await waitFor('the process to be stopped', () => stateOf(child.pid ?? 0) === 'T')
  const waiting = [1, 2].map(() => connect(port, '127.0.0.1').on('error', () => {}))
  t.after(() => waiting.forEach((socket) => socket.destroy()))
  await Promise.all(waiting.map((socket) => once(socket, 'connect')))
  return port
}

function stateOf(pid: number): string | undefined {
  return /\) (\w)/.exec(readFileSync(`/proc/${pid}/stat`, 'utf8'))?.[1]
}

/** Counts attempts: `dial` calls `onread` once per attempt. */
function countAttempts() {
  let count = 0
  const onread = () => {
    count += 1
    return ignored
  }
  return { onread, count: () => count }
}

const ignored: OnReadOpts = { buffer: Buffer.alloc(1), callback: () => true }

async function listen(server: Server): Promise<number> {
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('no port was given')
  return address.port
}

async function close(server: Server): Promise<void> {
  if (!server.listening) return
  server.close()
  await once(server, 'close')
}
