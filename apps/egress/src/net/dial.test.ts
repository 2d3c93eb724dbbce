import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:net'
import { test } from 'node:test'
import { compileRules } from '../domain/destination.ts'
import type { Way } from '../domain/way.ts'
import { openNameServer } from '../testing/name-server.ts'
import { createDialer } from './dial.ts'

/** A name that leads to some addresses, behind each of which somebody answers with his own. */
async function setup(t: { after(fn: () => void): void }, addresses = ['127.0.0.2', '127.0.0.3']) {
  const names = await openNameServer(t, addresses)
  const server = createServer((socket) => socket.end(socket.localAddress ?? ''))
  server.listen(0, '0.0.0.0')
  await once(server, 'listening')
  t.after(() => void server.close())
  const bound = server.address()
  const port = bound !== null && typeof bound === 'object' ? bound.port : 0
  const dialer = (closedRanges: string[]) =>
    createDialer({ nameservers: [names.address], closedRanges })

  return async (denyOut: string[], closedRanges: string[] = []) => {
    const rules = { allowOut: [], denyOut, allowNames: [] }
    const way: Way = {
      verdict: { kind: 'byAddress' },
      proxy: undefined,
      transform: {
        name: 'api.example.com',
        protocol: 'http',
        headers: {},
        authority: { certificate: '', key: '' },
        within: compileRules(rules, []),
      },
    }
    const target = { address: '127.0.0.4', port }
    const { socket } = await dialer(closedRanges).dial(way, target, new AbortController().signal)
    const [said]: Buffer[] = await once(socket, 'data')
    socket.destroy()
    return String(said)
  }
}

test('a connection whose requests are changed goes where its name is, not where it was meant to', async (t) => {
  const dial = await setup(t)
  assert.equal(await dial([]), '127.0.0.2')
})

test('it does not go to an address of the name that its sandbox may not go to', async (t) => {
  const dial = await setup(t)
  assert.equal(await dial(['127.0.0.2']), '127.0.0.3')
  const nowhere = { message: 'api.example.com is nowhere that a sandbox may go' }
  await assert.rejects(dial(['127.0.0.2/31']), nowhere)
  await assert.rejects(dial(['127.0.0.2'], ['127.0.0.3']), nowhere)
})

test('an address that may be gone to is found behind several that may not', async (t) => {
  const dial = await setup(t, ['127.0.0.2', '127.0.0.3', '127.0.0.5', '127.0.0.6', '127.0.0.7'])
  assert.equal(await dial(['127.0.0.0/30', '127.0.0.4/31']), '127.0.0.6')
})
