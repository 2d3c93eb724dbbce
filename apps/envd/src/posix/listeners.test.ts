import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:net'
import type { Server } from 'node:net'
import { test } from 'node:test'
import { listenerTable } from './listeners.ts'

async function listen(host: string, port = 0): Promise<{ port: number; server: Server }> {
  const server = createServer().listen(port, host)
  await once(server, 'listening')
  const address = server.address()
  assert.ok(typeof address === 'object' && address)
  return { port: address.port, server }
}

test('sockets that start or stop listening are seen by the tenth read at the latest', async () => {
  const readListeners = listenerTable()
  const scopesOf = (port: number) => {
    for (let reads = 0; reads < 9; reads += 1) readListeners()
    return readListeners()
      .filter((each) => each.port === port)
      .map(({ scope }) => scope)
  }
  const started = await Promise.all([listen('127.0.0.1'), listen('::1'), listen('127.77.0.2')])
  const any = await listen('0.0.0.0')
  const found = [...started, any].map(({ port }) => scopesOf(port))
  assert.deepEqual(found, [['loopback4'], ['loopback6'], ['other'], ['any']])
  for (const { server } of [...started, any]) server.close()
  assert.deepEqual(
    [...started, any].flatMap(({ port }) => scopesOf(port)),
    [],
  )
})
