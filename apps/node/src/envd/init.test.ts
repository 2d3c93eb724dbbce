import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:net'
import type { Socket } from 'node:net'
import { test } from 'node:test'
import { Fault } from '@atoll/kit/fault'
import { initEnvd, trustCertificate } from './init.ts'

const init = {
  sandboxId: 'i1',
  templateId: 'base',
  accessToken: undefined,
  cpuCount: 1,
  defaultUser: 'user',
  defaultWorkdir: undefined,
  memoryMb: 128,
}

/** Starts a server that has taken envd's place, on its own address. */
async function setup(answer: (socket: Socket) => void) {
  const address = `127.${1 + (process.pid % 250)}.77.${1 + Math.floor(Math.random() * 250)}`
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    sockets.add(socket)
    socket.on('error', () => {})
    socket.once('data', () => answer(socket))
  }).listen(49_983, address)
  await once(server, 'listening')
  return {
    initEnvd: (timeoutMs = 100) =>
      initEnvd(address, 'secret', init, { isAlive: () => true, timeoutMs }),
    trust: () => trustCertificate(address, 'secret', 'a certificate'),
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy()
      server.close()
      await once(server, 'close')
    },
  }
}

test('envd has heard who it is when it answers 204', async () => {
  await using envd = await setup((socket) => socket.end('HTTP/1.1 204 No Content\r\n\r\n'))
  await envd.initEnvd(30_000)
})

for (const [status, reason] of [
  ['404 Not Found', 'envd_too_old'],
  ['500 No', 'envd_refused'],
] as const) {
  test(`an authority that is answered with ${status} is not trusted`, async () => {
    await using envd = await setup((socket) => socket.end(`HTTP/1.1 ${status}\r\n\r\n`))
    await assert.rejects(envd.trust(), isFault(reason))
  })
}

test('any other answer is a refusal', async () => {
  await using envd = await setup((socket) => socket.end('HTTP/1.1 401 No\r\n\r\n'))
  await assert.rejects(envd.initEnvd(30_000), isFault('envd_refused'))
})

for (const [name, answer] of [
  ['closes', (socket: Socket) => socket.destroy()],
  ['speaks another protocol', (socket: Socket) => socket.end('SSH-2.0-x\r\n')],
  [
    'changes the protocol',
    (socket: Socket) =>
      socket.write('HTTP/1.1 101 Switching\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n'),
  ],
  [
    'says one character after the other',
    (socket: Socket) => {
      socket.write('HTTP/1.1 200 OK\r\nx: ')
      const timer = setInterval(() => socket.write('x'), 20)
      socket.once('close', () => clearInterval(timer))
    },
  ],
] as const) {
  test(`an envd that ${name} does not block the start for ever`, async () => {
    await using envd = await setup(answer)
    await assert.rejects(envd.initEnvd(), isFault('wait_timeout'))
  })
}

function isFault(reason: string) {
  return (error: unknown) => error instanceof Fault && error.reason === reason
}
