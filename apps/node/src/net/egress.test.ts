import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, beforeEach, describe, test } from 'node:test'
import { run } from '@atoll/kit/run'
import { waitFor } from '@atoll/kit/wait'
import { findProcesses, killProcess } from '../linux/processes/process.ts'
import { startMicrosocks } from '../testing/microsocks.ts'
import { connectSlot, connectWorld } from '../testing/veth-pairs.ts'
import { openNamespace } from '../testing/netns.ts'
import type { Namespace } from '../testing/netns.ts'

/** Public addresses outside, and one in a closed range. */
const [first, second, closed] = ['11.1.1.1', '11.2.2.2', '10.200.0.1']
const [hostOutside, worldServer] = ['11.0.0.1', '11.0.0.2']
const everything = ['0.0.0.0/0']
/** Contains U+2028 and U+2029, which some parsers treat as line ends. */
const password = 'pass:wörd\u2028\u2029'
const subnet = '10.124.0.0/24'

/** Records of the host's name server and of the proxy's name server. */
const names = {
  [worldServer]: {
    'shop.example': first,
    'api.shop.example': second,
    'inside.example': closed,
    'host.example': hostOutside,
  },
  '127.0.0.1': { 'shop.example': second, 'far.example': second },
}

/** Uses real connections from a sandbox through a host to the world, each in its own network namespace. */
describe('outgoing connections with name and proxy rules', { concurrency: 1 }, () => {
  const made = new AsyncDisposableStack()
  let host: Namespace
  let world: Namespace
  let sandbox: Namespace
  let controlSocket: string

  before(async () => {
    const dir = await mkdtemp(join(tmpdir(), 'atoll-egress-'))
    made.defer(() => rm(dir, { recursive: true }))
    const setting = settingIn(dir)
    await mkdir(setting.installation.runDir, { recursive: true })
    controlSocket = join(setting.installation.runDir, 'egress.sock')
    const open = async (role: string) =>
      made.use(await openNamespace(`eg${role}${process.pid}`, setting))
    world = await open('world')
    sandbox = await open('a')
    host = await open('host')
    made.defer(async () => egresses().then((pids) => pids.forEach(killProcess)))
    await connectWorld(host, world, [first, second, closed])
    await startServices(made, world.name)
    await host.install([], [])
    await host.addSlot(1)
    await connectSlot(host, sandbox, { subnet, linkPrefix: 'ategt-', number: 1 })
  })
  beforeEach(() => host.setRules(1))
  after(() => made.disposeAsync())

  const egresses = () => findProcesses((args) => args.includes(controlSocket))

  async function visit(kind: 'http' | 'tls' | 'name', address: string, name: string) {
    const program = join(import.meta.dirname, '../testing/visit.ts')
    const told = await sandbox.run(process.execPath, [program, kind, address, name])
    const { said, error }: { said?: string; error?: string } = JSON.parse(told)
    return said ?? error
  }

  const onlyShop = { allowOut: [], denyOut: everything, allowNames: ['shop.example'] }
  const proxy = { address: `${worldServer}:1080`, username: 'user', password }

  test('go to the address of their name, not to the address that the sandbox dialed', async () => {
    await host.setRules(1, onlyShop)
    assert.equal(
      await visit('http', second, 'shop.example'),
      `${first} shop.example ${hostOutside}`,
    )
    assert.equal(await visit('tls', second, 'shop.example'), `${first} shop.example ${hostOutside}`)
    assert.equal(
      await visit('http', first, 'SHOP.example:80'),
      `${first} SHOP.example:80 ${hostOutside}`,
    )
  })

  test('with other names, or without a name, are refused', async () => {
    await host.setRules(1, onlyShop)
    for (const [kind, name] of [
      ['http', 'api.shop.example'],
      ['http', first],
      ['http', ''],
      ['tls', 'api.shop.example'],
      ['tls', ''],
    ] as const) {
      assert.equal(await visit(kind, first, name), 'ECONNRESET', `${kind} ${name}`)
    }
  })

  test('are counted by name and verdict, with refused questions for names', async () => {
    await host.setRules(1)
    await host.setRules(1, onlyShop)
    await visit('http', first, 'shop.example')
    await visit('http', second, 'shop.example')
    await visit('tls', first, 'api.shop.example')
    await visit('http', first, '')
    await visit('name', '8.8.8.8', 'api.shop.example')
    const proxied = (await host.connections(1)).filter((line) => !/ udp |:53 \d+$/.test(line))
    for (const line of [
      'allowed tcp shop.example:80 2',
      'denied tcp api.shop.example:443 1',
      `denied tcp ${first}:80 1`,
    ]) {
      assert.ok(proxied.includes(line), `${line} in ${proxied.join()}`)
    }
    const questions = (await host.connections(1)).filter((line) => line.includes(' dns '))
    assert.ok(Math.abs(Number(await host.lastDenied(1)) - Date.now()) < 600_000)
    assert.match(questions.join(), /^denied dns api\.shop\.example:53 \d+$/)
  })

  test('match all names below a wildcard, but not the name itself', async () => {
    await host.setRules(1, { ...onlyShop, allowNames: ['*.shop.example'] })
    assert.equal(
      await visit('tls', first, 'api.shop.example'),
      `${second} api.shop.example ${hostOutside}`,
    )
    assert.equal(await visit('tls', first, 'shop.example'), 'ECONNRESET')
  })

  test('to a name that resolves to a closed address are refused', async () => {
    await host.listen(80)
    await host.setRules(1, { ...onlyShop, allowNames: ['inside.example', 'host.example'] })
    assert.equal(await visit('http', first, 'inside.example'), 'ECONNRESET')
    assert.equal(await visit('http', first, 'host.example'), 'ECONNRESET')
    assert.equal(await visit('http', closed, 'inside.example'), 'ECONNREFUSED')
  })

  test('to an allowed address pass, whatever their name', async () => {
    await host.setRules(1, { ...onlyShop, allowOut: [second] })
    assert.equal(await visit('http', second, 'any.example'), `${second} any.example ${hostOutside}`)
    assert.equal(await visit('http', second, ''), `${second}  ${hostOutside}`)
  })

  test('resolve allowed names, and no others', async () => {
    await host.setRules(1, onlyShop)
    assert.equal(await visit('name', '8.8.8.8', 'shop.example'), first)
    assert.equal(await visit('name', '8.8.8.8', 'api.shop.example'), 'EREFUSED')
    await host.setRules(1)
    assert.equal(await visit('name', worldServer, 'api.shop.example'), second)
  })

  test('go through the proxy, which resolves names itself', async () => {
    await host.setRules(1, { allowOut: [], denyOut: [], proxy })
    assert.equal(await visit('http', first, 'any.example'), `${first} any.example ${first}`)
    await host.setRules(1, { ...onlyShop, proxy })
    assert.equal(await visit('tls', first, 'shop.example'), `${second} shop.example ${second}`)
    assert.equal(await visit('tls', first, 'api.shop.example'), 'ECONNRESET')
  })

  test('do not bypass a failing proxy', async () => {
    const wrong = [
      { ...proxy, password: 'wrong' },
      { ...proxy, address: `${worldServer}:1081` },
      { ...proxy, address: `${closed}:1080` },
    ]
    for (const failing of wrong) {
      await host.setRules(1, { allowOut: [first], denyOut: [], proxy: failing })
      assert.equal(await visit('http', first, 'any.example'), 'ECONNRESET', failing.address)
    }
  })

  test('end when new rules no longer allow them, and continue otherwise', async () => {
    await host.setRules(1, { ...onlyShop, allowOut: [first] })
    await world.listen(7000)
    const dialled = await sandbox.dial(first, 7000)
    assert.ok('name' in dialled)
    await host.setRules(1, { ...onlyShop, allowOut: [first, second] })
    await sandbox.say(dialled.name, 'still there')
    assert.equal(await sandbox.ended(dialled.name), null)
    await host.setRules(1, onlyShop)
    const why = await waitFor('its end', async () => (await sandbox.ended(dialled.name)) ?? false)
    assert.equal(why, 'ECONNRESET')
  })

  test('survive a restart of the agent, and end with their slot', async () => {
    await host.setRules(1, { ...onlyShop, allowOut: [first] })
    const dialled = await sandbox.dial(first, 7000)
    assert.ok('name' in dialled)
    await host.install([1], [[1, { ...onlyShop, allowOut: [first] }]])
    await sandbox.say(dialled.name, 'still there')
    assert.equal(await sandbox.ended(dialled.name), null)
    assert.equal(
      await visit('http', second, 'shop.example'),
      `${first} shop.example ${hostOutside}`,
    )
    await host.removeSlot(1)
    await host.addSlot(1)
    assert.equal(
      await visit('http', second, 'shop.example'),
      `${second} shop.example ${hostOutside}`,
    )
  })

  test('use a new egress process after the first was killed, with the same rules', async () => {
    await host.setRules(1, { ...onlyShop, proxy })
    const killed = await egresses()
    assert.equal(killed.length, 1)
    killed.forEach(killProcess)
    const seen = await waitFor('another', async () => {
      const answer = await visit('tls', first, 'shop.example')
      return answer !== 'ECONNRESET' && answer !== 'ECONNREFUSED' && answer
    })
    assert.equal(seen, `${second} shop.example ${second}`)
    assert.equal(await visit('tls', first, 'api.shop.example'), 'ECONNRESET')
    const now = await egresses()
    assert.equal(now.length, 1)
    assert.notDeepEqual(now, killed)
  })

  test('are served by a process without privileges', async () => {
    await host.setRules(1, onlyShop)
    const [pid] = await egresses()
    const status = await run('cat', [`/proc/${pid}/status`])
    assert.match(status, /^Uid:\s+65534\s+65534\s+65534\s+65534$/m)
    assert.match(status, /^CapEff:\s+0+$/m)
  })

  test('leave nothing on the host after the last one', async () => {
    await host.setRules(1, onlyShop)
    await host.uninstall()
    assert.deepEqual(await egresses(), [])
    assert.doesNotMatch(await host.run('ip', ['rule', 'list']), /fwmark/)
    assert.equal((await host.run('nft', ['list', 'tables'])).trim(), '')
  })
})

function settingIn(dir: string) {
  const runDir = join(dir, 'run/x')
  const shown = { nftTable: 'atoll_egtest', linkPrefix: 'ategt-', cgroup: 'unused' }
  const installation = { tag: 'e6e57', dataDir: dir, runDir, ...shown }
  return { subnet, nameservers: [worldServer], installation }
}

async function startServices(made: AsyncDisposableStack, namespace: string): Promise<void> {
  // Name server of the proxy: `ip netns exec` gives its namespace a separate resolv.conf.
  const etc = `/etc/netns/${namespace}`
  await mkdir(etc, { recursive: true })
  made.defer(() => rm(etc, { recursive: true }))
  await writeFile(join(etc, 'resolv.conf'), 'nameserver 127.0.0.1\n')
  const program = join(import.meta.dirname, '../testing/world-services.ts')
  const command = ['netns', 'exec', namespace, process.execPath, program, JSON.stringify(names)]
  const child = spawn('ip', command, { stdio: ['ignore', 'pipe', 'inherit'] })
  made.defer(async () => {
    const ended = once(child, 'exit')
    child.kill('SIGKILL')
    await ended
  })
  await once(child.stdout, 'data')
  made.use(await startMicrosocks(namespace, { port: 1080, username: 'user', password }))
}
