import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect, createServer } from 'node:net'
import type { Server } from 'node:net'
import { networkInterfaces } from 'node:os'
import { text } from 'node:stream/consumers'
import { after, before, describe, test } from 'node:test'
import { waitFor } from '@atoll/kit/wait'
import { Sandbox } from 'e2b'
import * as attempts from '../attempts.ts'
import { namesOf } from '../host-state.ts'
import { install } from '../installation.ts'
import type { Installation } from '../installation.ts'
import { openOutside } from './outside.ts'
import type { Outside } from './outside.ts'
import { python, runtimes, shell } from '../shell.ts'

const envdPort = 49983

for (const runtime of runtimes) {
  describe(`the network of a sandbox under ${runtime}`, { concurrency: 1 }, () => {
    const resources = new AsyncDisposableStack()
    let installation: Installation
    let outside: Outside
    let host: { readonly port: number; readonly connections: () => number }
    let sandbox: Sandbox
    let neighbour: Sandbox

    before(async () => {
      outside = resources.use(await openOutside())
      host = await listenOnHost(resources)
      installation = resources.use(await install({ ATOLL_RUNTIME: runtime }))
      const createSandbox = () =>
        Sandbox.create('base', { ...installation.connection, timeoutMs: 600_000 })
      ;[sandbox, neighbour] = await Promise.all([createSandbox(), createSandbox()])
    })
    after(() => resources.disposeAsync())

    test('reaches public addresses by TCP and UDP, from an address of the host', async () => {
      const target = [outside.publicAddress, outside.port]
      const expected = `outside saw ${outside.hostAddress}`
      assert.deepEqual(await python(sandbox, attempts.reach, [['tcp', ...target]]), [expected])
      assert.deepEqual(await python(sandbox, attempts.reach, [['udp', ...target]]), [expected])
    })

    test('reaches no private, shared or link-local address', async () => {
      for (const address of outside.closedAddresses) {
        assert.match(await reachFromHost(address, outside.port), /^outside saw /)
      }
      const targets = outside.closedAddresses.flatMap((address) => [
        ['tcp', address, outside.port],
        ['udp', address, outside.port],
      ])
      assertUnreachable(await python(sandbox, attempts.reach, targets), targets.length)
    })

    test('reaches no address of the host', async () => {
      const { linkPrefix } = await namesOf(installation.dataDir)
      const addresses = hostAddresses(linkPrefix)
      assert.ok(addresses.includes(outside.hostAddress))
      for (const address of addresses) {
        assert.match(await reachFromHost(address, host.port), /^host saw /)
      }
      const gateway = await shell(sandbox, 'ip route show default')
      assert.ok(addresses.includes(/via ([\d.]+)/.exec(gateway.stdout)?.[1] ?? ''), gateway.stdout)
      const connectionsBefore = host.connections()
      const targets = [...addresses, '127.0.0.1', '0.0.0.0'].map((address) => [
        'tcp',
        address,
        host.port,
      ])
      assertUnreachable(await python(sandbox, attempts.reach, targets), targets.length)
      assert.equal(host.connections(), connectionsBefore)
      const apiPort = new URL(installation.url).port
      const apiTargets = addresses.map((address) => ['tcp', address, Number(apiPort)])
      assertUnreachable(await python(sandbox, attempts.reach, apiTargets), apiTargets.length)
    })

    test('reaches no other sandbox', async () => {
      await shell(neighbour, 'python3 -m http.server 8000 >/dev/null 2>&1 &')
      const address = await addressOf(neighbour)
      await waitFor('the server in the neighbour', () =>
        reachFromHost(address, 8000).then(
          () => true,
          () => false,
        ),
      )
      await reachFromHost(address, envdPort)
      const targets = [8000, envdPort].map((port) => ['tcp', address, port])
      assertUnreachable(await python(sandbox, attempts.reach, targets), targets.length)
    })

    test('is reachable from outside only through the edge', async () => {
      const address = await addressOf(sandbox)
      await reachFromHost(address, envdPort)
      const dial = (to: string, port: number) =>
        outside.tryRun(process.execPath, ['-e', dialProgram, to, String(port)])
      assert.equal((await dial(outside.hostAddress, host.port)).code, 0)
      assert.notEqual((await dial(address, envdPort)).code, 0)
    })

    test('sends no packet with a forged source address', async () => {
      const target = [outside.publicAddress, outside.port]
      const result = await python(sandbox, attempts.spoof, [...target, '11.22.33.99'])
      if (runtime === 'runc') return assert.equal(result, 'EPERM')
      assert.equal(result, 'sent')
      // Both packets take the same path, the genuine packet last.
      await waitFor('the genuine packet', () => outside.datagrams().includes('genuine'))
      assert.ok(!outside.datagrams().includes('spoofed'))
    })

    test('has no IPv6 beyond the sandbox', async () => {
      const { stdout } = await shell(sandbox, 'ip -6 -o addr show; ip -6 route show')
      assert.ok(!/\binet6 (?!::1|fe80:)/.test(stdout), stdout)
      assert.ok(!/^default/m.test(stdout), stdout)
      const { linkPrefix } = await namesOf(installation.dataDir)
      const links = Object.entries(networkInterfaces()).filter(([link]) =>
        link.startsWith(linkPrefix),
      )
      assert.ok(links.length >= 2)
      for (const [link, addresses] of links) {
        assert.ok(
          addresses?.every(({ family }) => family === 'IPv4'),
          link,
        )
      }
    })
  })
}

async function addressOf(sandbox: Sandbox): Promise<string> {
  const { stdout } = await shell(sandbox, 'ip -4 -o addr show dev eth0')
  return /inet ([\d.]+)\//.exec(stdout)?.[1] ?? assert.fail(stdout)
}

/** Checks that each of the `count` attempts failed; an answer of any kind is an error. */
function assertUnreachable(answers: unknown, count: number): void {
  assert.ok(Array.isArray(answers))
  assert.deepEqual(
    answers.filter((answer) => answer !== null),
    [],
  )
  assert.equal(answers.length, count)
}

/** Returns the addresses of the host, without those of other installations, which change meanwhile. */
function hostAddresses(linkPrefix: string): string[] {
  return Object.entries(networkInterfaces()).flatMap(([link, addresses]) =>
    (/^at[0-9a-f]{5}-/.test(link) && !link.startsWith(linkPrefix) ? [] : (addresses ?? []))
      .filter(({ family, internal }) => family === 'IPv4' && !internal)
      .map(({ address }) => address),
  )
}

/** Returns the greeting of a listener, or an empty text from a server that waits for a request. */
async function reachFromHost(address: string, port: number): Promise<string> {
  const socket = connect({ host: address, port, timeout: 60_000 })
  socket.once('timeout', () => socket.destroy(new Error(`no answer from ${address}`)))
  await once(socket, 'connect')
  socket.end()
  return text(socket)
}

async function listenOnHost(resources: AsyncDisposableStack) {
  let connections = 0
  const server: Server = createServer((socket) => {
    connections += 1
    socket.on('error', () => {})
    socket.end(`host saw ${socket.remoteAddress}\n`)
  })
  server.listen(0, '0.0.0.0')
  await once(server, 'listening')
  resources.defer(() => void server.close())
  const address = server.address()
  assert.ok(address !== null && typeof address === 'object')
  return { port: address.port, connections: () => connections }
}

const dialProgram = `
const [host, port] = process.argv.slice(1)
require('node:net').connect({ host, port, timeout: 10_000 })
  .on('connect', () => process.exit(0))
  .on('timeout', () => process.exit(1))
  .on('error', () => process.exit(1))
`
