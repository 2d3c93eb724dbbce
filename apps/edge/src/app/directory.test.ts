import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { TestContext } from 'node:test'
import { silentLogger } from '@atoll/kit/log'
import { waitFor } from '@atoll/kit/wait'
import { nodeSandboxSource } from '../nodes/source.ts'
import { simulateNode } from '@atoll/simulated-node/node'
import { openIngress } from '../domain/ingress.ts'
import type { SandboxSource } from '../domain/sandbox.ts'
import { createDirectory } from './directory.ts'

function setup(t: TestContext) {
  const node = simulateNode()
  const directory = createDirectory(nodeSandboxSource(node.transport), silentLogger)
  t.after(() => directory.close())
  const cached = (id: string) =>
    waitFor(`${id} in the cache`, async () => {
      const asked = node.begun('get')
      const found = await directory.find(id)
      return found && node.begun('get') === asked && found
    })
  const gone = (id: string) =>
    waitFor(`${id} to go`, async () => (await directory.find(id)) === undefined)
  return { node, directory, cached, gone }
}

test('a sandbox that the watch reported is found without a lookup', async (t) => {
  const { node, cached } = setup(t)
  node.start('a', '127.0.0.2')
  assert.equal((await cached('a')).address, '127.0.0.2')
})

test('concurrent requests for one unknown ID share a lookup, and later requests look it up again', async (t) => {
  const { node, directory } = setup(t)
  const answers = await Promise.all([1, 2, 3].map(async () => directory.find('x')))
  assert.deepEqual([answers, node.begun('get')], [[undefined, undefined, undefined], 1])
  await directory.find('x')
  assert.equal(node.begun('get'), 2)
})

test('when a sandbox ends, attached connections are disconnected once, and late ones too', async (t) => {
  const { node, cached, gone } = setup(t)
  node.start('a', '127.0.0.2')
  const sandbox = await cached('a')
  let cuts = 0
  const detach = sandbox.attach(() => (cuts += 100))
  sandbox.attach(() => (cuts += 1))
  detach()
  assert.equal(sandbox.open, 1)
  node.end('a')
  await gone('a')
  assert.equal(cuts, 1)
  sandbox.attach(() => (cuts += 1))
  await waitFor('the cut', () => cuts === 2)
})

test('a paused sandbox is disconnected and not found, by watch and by lookup', async (t) => {
  const { node, directory, cached, gone } = setup(t)
  node.start('a', '127.0.0.2')
  const sandbox = await cached('a')
  let cut: string | undefined
  sandbox.attach((reason) => (cut = reason))
  node.pause('a')
  await gone('a')
  assert.equal(cut, 'ended')
  node.pause('never-seen')
  assert.equal(await directory.find('never-seen'), undefined)
  node.start('a', '127.0.0.3')
  assert.equal((await cached('a')).address, '127.0.0.3')
})

test('a sandbox that is being paused is not found, by watch and by lookup, and open connections stay', async (t) => {
  const { node, directory, cached, gone } = setup(t)
  node.start('a', '127.0.0.2')
  const sandbox = await cached('a')
  const told: string[] = []
  sandbox.attach((reason) => told.push(reason))
  node.beginPause('a')
  await gone('a')
  assert.deepEqual([told, sandbox.open], [['pausing'], 1])
  // A connection that attaches late is notified too.
  sandbox.attach((reason) => told.push(`late ${reason}`))
  await waitFor('the news', () => told.includes('late pausing'))
  node.breakWatches()
  await waitFor('the watch to break', () => node.watchers === 0)
  assert.equal(await directory.find('a'), undefined)
  node.mendWatches()
  await waitFor('the watch', () => node.watchers === 1)
  assert.equal(await directory.find('a'), undefined)
  node.start('a', '127.0.0.2')
  assert.equal(await cached('a'), sandbox)
  assert.deepEqual(told, ['pausing', 'late pausing'])
})

test('an address that a new sandbox takes over no longer belongs to the old one', async (t) => {
  const { node, cached } = setup(t)
  node.start('a', '127.0.0.2')
  let cut = false
  const old = await cached('a')
  old.attach(() => (cut = true))
  node.start('b', '127.0.0.2')
  await cached('b')
  assert.equal(cut, true)
})

test('while the watch is down every request is looked up, and open connections stay', async (t) => {
  const { node, directory, cached } = setup(t)
  node.start('a', '127.0.0.2')
  let cut = false
  const sandbox = await cached('a')
  sandbox.attach(() => (cut = true))
  node.breakWatches()
  await waitFor('a lookup', async () => {
    const asked = node.begun('get')
    assert.equal(await directory.find('a'), sandbox)
    return node.begun('get') === asked + 1
  })
  assert.equal(cut, false)
  node.mendWatches()
  assert.equal(await cached('a'), sandbox)
})

test('a sandbox that ended while the watch was down is disconnected when the watch is back', async (t) => {
  const { node, cached } = setup(t)
  node.start('a', '127.0.0.2')
  let cut = false
  const sandbox = await cached('a')
  sandbox.attach(() => (cut = true))
  node.breakWatches()
  await waitFor('the watch to break', () => node.watchers === 0)
  node.end('a')
  node.mendWatches()
  await waitFor('the cut', () => cut)
})

test('a lookup that raced with the end of the sandbox is not trusted', async (t) => {
  let end = () => {}
  let asked = 0
  const source: SandboxSource = {
    async get(id) {
      asked += 1
      if (asked > 1) return undefined
      end()
      await waitFor('the end to be seen', () => seen)
      return { id, generation: 1, address: '127.0.0.2', ingress: openIngress, isPausing: false }
    },
    async *watch(signal) {
      const ended = new Promise<void>((resolve) => (end = resolve))
      yield { kind: 'synced' }
      await ended
      yield { kind: 'ended', id: 'a' }
      seen = true
      await new Promise((resolve) => signal.addEventListener('abort', resolve))
    },
  }
  let seen = false
  const directory = createDirectory(source, silentLogger)
  t.after(() => directory.close())
  assert.deepEqual([await directory.find('a'), asked], [undefined, 2])
})

test('an unreachable node is a fault, not a missing sandbox', async (t) => {
  const { directory, node } = setup(t)
  await directory.close()
  node.start('a', '127.0.0.2')
  await assert.rejects(async () => directory.find('a'), { kind: 'unavailable' })
})
