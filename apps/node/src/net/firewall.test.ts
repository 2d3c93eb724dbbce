import assert from 'node:assert/strict'
import { mkdir, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, beforeEach, describe, test } from 'node:test'
import { waitFor } from '@atoll/kit/wait'
import { parseSubnet, toSlot } from '../domain/network/slot.ts'
import { connectSlot, connectWorld } from '../testing/veth-pairs.ts'
import { openNamespace } from '../testing/netns.ts'
import type { Namespace } from '../testing/netns.ts'

/** Public addresses outside, and one in a closed range. */
const [first, second, third, closed] = ['11.1.1.1', '11.2.2.2', '11.3.3.3', '10.200.0.1']
const port = 7000
const subnet = '10.123.0.0/24'
const everything = '0.0.0.0/0'
const place = { subnet, linkPrefix: 'atfwt-' }

/** Uses real packets from two sandboxes through a host to the world, each in its own network namespace. */
describe('packets from a sandbox', { concurrency: 1 }, () => {
  const made = new AsyncDisposableStack()
  let host: Namespace
  let world: Namespace
  let sandbox: Namespace
  let neighbour: Namespace

  before(async () => {
    const dir = await mkdtemp(join(tmpdir(), 'atoll-firewall-'))
    made.defer(() => rm(dir, { recursive: true }))
    await mkdir(join(dir, 'run'))
    const open = async (role: string) =>
      made.use(await openNamespace(`fw${role}${process.pid}`, setting(dir)))
    host = await open('host')
    world = await open('world')
    sandbox = await open('a')
    neighbour = await open('b')
    await connectWorld(host, world, [first, second, third, closed])
    for (const listener of [world, host, neighbour]) await listener.listen(port)
    await host.install([], [])
    await host.addSlot(1)
    await connectSlot(host, sandbox, { ...place, number: 1 })
    await host.addSlot(2)
    await connectSlot(host, neighbour, { ...place, number: 2 })
  })
  beforeEach(async () => {
    await host.setRules(1)
    await host.setRules(2)
  })
  after(() => made.disposeAsync())

  /** Connects by TCP to each address and returns the outcomes. */
  const dials = async (from: Namespace, addresses: readonly string[]) =>
    Promise.all(
      addresses.map(async (address) => {
        const result = await from.dial(address, port)
        return 'name' in result ? 'open' : result.error
      }),
    )

  /**
   * Sends a datagram to each address and returns the addresses that got one. `second` is always open and comes last.
   */
  async function arrivals(from: Namespace, addresses: readonly string[]): Promise<string[]> {
    const mark = `${performance.now()}`
    for (const address of addresses) await from.send(address, port, `${mark} ${address}`)
    await waitFor('the last datagram', async () => {
      await from.send(second, port, `${mark} last`)
      return (await world.datagrams()).includes(`${mark} last`)
    })
    const seen = (await world.datagrams()).filter((text) => text.startsWith(mark))
    return [...new Set(seen.map((text) => text.split(' ')[1] ?? ''))].filter(
      (text) => text !== 'last',
    )
  }

  async function connection(from: Namespace, address: string): Promise<string> {
    const result = await from.dial(address, port)
    assert.ok('name' in result, JSON.stringify(result))
    await echo(from, result.name)
    return result.name
  }

  /** Sends one message in each direction. */
  async function echo(from: Namespace, name: string): Promise<void> {
    for (const [speaker, listener] of [
      [from, world],
      [world, from],
    ] as const) {
      const word = `${performance.now()};`
      await waitFor('the line', () =>
        speaker.say(name, word).then(
          () => true,
          () => false,
        ),
      )
      await waitFor('the word', async () => (await listener.heard(name)).endsWith(word))
    }
  }

  test('reach everything but the closed ranges, without rules', async () => {
    assert.deepEqual(await dials(sandbox, [first, second, closed]), [
      'open',
      'open',
      'ECONNREFUSED',
    ])
    assert.deepEqual(await arrivals(sandbox, [first, closed]), [first])
  })

  test('do not reach denied addresses: TCP is reset, the rest is dropped', async () => {
    await host.setRules(1, { allowOut: [], denyOut: [first, '11.3.0.0/16'] })
    assert.deepEqual(await dials(sandbox, [first, second, third]), [
      'ECONNREFUSED',
      'open',
      'ECONNREFUSED',
    ])
    assert.deepEqual(await arrivals(sandbox, [first, second, third]), [second])
  })

  test('reach allowed addresses, also inside a denied range', async () => {
    await host.setRules(1, { allowOut: [second, '11.3.3.0/24'], denyOut: [everything, third] })
    assert.deepEqual(await dials(sandbox, [first, second, third]), ['ECONNREFUSED', 'open', 'open'])
    assert.deepEqual(await arrivals(sandbox, [first, second, third]), [second, third])
  })

  test('is everything where something is allowed and nothing denied', async () => {
    await host.setRules(1, { allowOut: [second], denyOut: [] })
    assert.deepEqual(await dials(sandbox, [first, second]), ['open', 'open'])
  })

  test('are counted by destination and verdict, for each sandbox alone', async () => {
    await host.addSlot(3, { allowOut: [], denyOut: [first] })
    const other = made.use(await openNamespace(`fwc${process.pid}`, setting('/nowhere')))
    await connectSlot(host, other, { ...place, number: 3 })
    assert.deepEqual([await host.connections(3), await host.lastDenied(3)], [[], null])
    await dials(other, [first, first, second, closed])
    await other.send(first, port, 'denied')
    await arrivals(other, [])
    // The listing of the firewall is shared for a second.
    await waitFor('all connections', async () => (await host.connections(3)).length >= 5)
    const counted = (await host.connections(3)).map((line) => line.replace(/(udp.*) \d+$/, '$1'))
    assert.deepEqual(counted, [
      `allowed tcp ${second}:${port} 1`,
      `allowed udp ${second}:${port}`,
      `denied tcp ${closed}:${port} 1`,
      `denied tcp ${first}:${port} 2`,
      `denied udp ${first}:${port}`,
    ])
    assert.ok(Math.abs(Number(await host.lastDenied(3)) - Date.now()) < 600_000)
    const hasRecords = async () => (await ruleset()).includes('"atfwt-3"')
    assert.ok(await hasRecords())
    // The next user of the slot starts without records. They also go if the slot stays unused.
    await host.removeSlot(3)
    await host.addSlot(3)
    assert.deepEqual((await ruleset()).match(/"atfwt-3".*/g), [
      `"atfwt-3" . ${toSlot(parseSubnet(subnet), 'atfwt-', 3).sandboxAddress} }`,
    ])
    await dials(other, [first])
    assert.match(await ruleset(), /"atfwt-3" \. [\d.]+ \. tcp/)
    await host.removeSlot(3)
    await waitFor('the records to go', async () => !(await hasRecords()), { timeoutMs: 60_000 })
    assert.match(await ruleset(), /"atfwt-1" \. [\d.]+ \. tcp/)
  })

  test('never reach a closed range, whatever is allowed', async () => {
    await host.setRules(1, { allowOut: [closed, everything], denyOut: [] })
    assert.deepEqual(await dials(sandbox, [closed, first]), ['ECONNREFUSED', 'open'])
    assert.deepEqual(await arrivals(sandbox, [closed]), [])
  })

  test('reach neither the host nor another sandbox, which both listen: TCP is reset', async () => {
    const addresses = [1, 2].map((number) => toSlot(parseSubnet(subnet), 'atfwt-', number))
    const [own, next] = addresses
    assert.deepEqual(
      await dials(sandbox, [
        own?.hostAddress ?? '',
        next?.hostAddress ?? '',
        next?.sandboxAddress ?? '',
      ]),
      ['ECONNREFUSED', 'ECONNREFUSED', 'ECONNREFUSED'],
    )
  })

  test('is decided for each sandbox by its own rules', async () => {
    await host.setRules(1, { allowOut: [], denyOut: [first] })
    await host.setRules(2, { allowOut: [], denyOut: [third] })
    assert.deepEqual(await dials(sandbox, [first, third]), ['ECONNREFUSED', 'open'])
    assert.deepEqual(await dials(neighbour, [first, third]), ['open', 'ECONNREFUSED'])
  })

  test('ends where new rules forbid an open connection, when the sandbox speaks', async () => {
    const kept = await connection(sandbox, second)
    const cut = await connection(sandbox, first)
    await host.setRules(1, { allowOut: [second], denyOut: [everything] })
    await sandbox.say(cut, 'after the change;')
    await waitFor('the reset', async () => (await sandbox.ended(cut)) === 'ECONNRESET')
    assert.ok(!(await world.heard(cut)).includes('after'))
    await echo(sandbox, kept)
  })

  test('ends where new rules forbid an open connection, when the other side speaks', async () => {
    const kept = await connection(sandbox, second)
    const cut = await connection(sandbox, first)
    await host.setRules(1, { allowOut: [], denyOut: [first] })
    await world.say(cut, 'after the change;')
    await waitFor('the reset', async () => (await world.ended(cut)) === 'ECONNRESET')
    assert.ok(!(await sandbox.heard(cut)).includes('after'))
    await echo(sandbox, kept)
  })

  test('is open again when the rules are taken away', async () => {
    await host.setRules(1, { allowOut: [], denyOut: [everything] })
    assert.deepEqual(await dials(sandbox, [first]), ['ECONNREFUSED'])
    await host.setRules(1)
    assert.deepEqual(await dials(sandbox, [first]), ['open'])
  })

  test('stays under the old rules when the new ones cannot be read', async () => {
    await host.setRules(1, { allowOut: [], denyOut: [first] })
    await assert.rejects(host.setRules(1, { allowOut: [], denyOut: ['example.com'] }))
    assert.deepEqual(await dials(sandbox, [first, second]), ['ECONNREFUSED', 'open'])
  })

  test('reach nothing once the slot is expelled, and the next user of the slot starts without rules', async () => {
    await host.setRules(1, { allowOut: [], denyOut: [second] })
    const name = await connection(sandbox, first)
    await host.removeSlot(1)
    await host.removeSlot(1)
    assert.deepEqual(await dials(sandbox, [first]), ['SILENCE'])
    assert.ok(!(await ruleset()).includes('slot_1 '))
    await host.addSlot(1)
    assert.deepEqual(await dials(sandbox, [second]), ['open'])
    await echo(sandbox, name)
  })

  test('keeps to rules given with the admission', async () => {
    await host.removeSlot(1)
    await host.addSlot(1, { allowOut: [], denyOut: [first] })
    assert.deepEqual(await dials(sandbox, [first, second]), ['ECONNREFUSED', 'open'])
  })

  test('obey the same rules, and open connections continue, after the table is installed again', async () => {
    const name = await connection(sandbox, second)
    await host.install([1, 2], [[1, { allowOut: [second], denyOut: [everything] }]])
    await echo(sandbox, name)
    assert.deepEqual(await dials(sandbox, [first, second]), ['ECONNREFUSED', 'open'])
    assert.deepEqual(await dials(neighbour, [first]), ['open'])
    await host.setRules(1)
    assert.deepEqual(await dials(sandbox, [first]), ['open'])
  })

  test('passes as many rules with fifty sandboxes as with two', async () => {
    const few = await ruleset()
    const more = Array.from({ length: 50 }, (_, at) => at + 5)
    for (const number of more.slice(0, 3)) {
      await host.addSlot(number, { allowOut: [first], denyOut: [everything] })
    }
    await host.install(
      [1, 2, ...more],
      more.map((number) => [number, { allowOut: [first], denyOut: [everything] }]),
    )
    assert.equal(sharedChains(await ruleset()), sharedChains(few))
    await host.install([1, 2], [])
  })

  const ruleset = () =>
    host.run('nft', ['list', 'table', 'inet', setting('').installation.nftTable])
})

/** Returns the chains that every packet passes. */
function sharedChains(table: string): string {
  return [...table.matchAll(/^\tchain (?!slot_)[^]*?^\t\}/gm)].map(([text]) => text).join('\n')
}

function setting(dir: string) {
  const runDir = join(dir, 'run/x')
  const names = { nftTable: 'atoll_fwtest', linkPrefix: 'atfwt-', cgroup: 'unused' }
  return { subnet, installation: { tag: 'f1e57', dataDir: dir, runDir, ...names } }
}
