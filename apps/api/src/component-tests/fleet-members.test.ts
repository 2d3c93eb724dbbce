import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createHeartbeats } from '../app/fleet/heartbeats.ts'
import { createMembership } from '../app/fleet/membership.ts'
import { manualClock, startApiUnderTest } from '../sim/api.ts'

const hour = 60 * 60

test('an edge that is silent for a day is not listed until it calls again; a node always is', async () => {
  await using api = await startApiUnderTest()
  const clock = manualClock()
  await api.withStores(async ({ fleet: store }) => {
    const membership = createMembership({ store, clock })
    const join = async (role: 'edge' | 'node', id?: string) => {
      const { secret } = await membership.createToken(role)
      return membership.join({ secret, role, id })
    }
    const [node, alive, ended] = [await join('node', 'n'), await join('edge'), await join('edge')]
    const listed = async () => (await membership.list()).map(({ id }) => id).toSorted()
    for (let hours = 0; hours < 30; hours += 1) {
      clock.advance(hour)
      await membership.check({ role: 'edge', id: alive })
      if (hours < 20) assert.deepEqual(await listed(), [node, alive, ended].toSorted())
    }
    assert.deepEqual(await listed(), [node, alive].toSorted())
    await membership.check({ role: 'edge', id: ended })
    assert.deepEqual(await listed(), [node, alive, ended].toSorted())
  })
})

test('heartbeats of a moment are noted together; nodes that are not members are refused', async () => {
  await using api = await startApiUnderTest()
  const clock = manualClock()
  await api.withStores(async ({ fleet: store }) => {
    const membership = createMembership({ store, clock })
    const join = async (id: string) => {
      const { secret } = await membership.createToken('node')
      return membership.join({ secret, role: 'node', id })
    }
    for (const id of ['b', 'a', 'removed']) await join(id)
    await membership.remove('removed')
    let writes = 0
    const counted: typeof store = {
      ...store,
      noteHeartbeats(nodes, now) {
        writes += 1
        return store.noteHeartbeats(nodes, now)
      },
    }
    const note = createHeartbeats({ store: counted, clock })
    const beat = (port: number) =>
      Promise.allSettled(
        ['b', 'removed', 'a', 'unknown'].map((id) =>
          note({ id, address: `10.0.0.1:${port}`, isStarting: port === 1 }),
        ),
      )
    for (const port of [1, 2]) {
      const outcomes = (await beat(port)).map(({ status }) => status)
      assert.deepEqual(outcomes, ['fulfilled', 'rejected', 'fulfilled', 'rejected'])
      const seenAt = clock.now().getTime()
      const known = { address: `10.0.0.1:${port}`, seenAt, isStarting: port === 1 }
      assert.deepEqual(await store.listNodes(), [
        { id: 'a', ...known },
        { id: 'b', ...known },
      ])
      clock.advance(4)
    }
    assert.equal(writes, 2)
  })
})

test('a heartbeat that the store refuses costs no heartbeat of other nodes', async () => {
  await using api = await startApiUnderTest()
  const clock = manualClock()
  await api.withStores(async ({ fleet: store }) => {
    const membership = createMembership({ store, clock })
    for (const id of ['a', 'b', 'c']) {
      const { secret } = await membership.createToken('node')
      await membership.join({ secret, role: 'node', id })
    }
    const note = createHeartbeats({ store, clock })
    const beats = ['10.0.0.1:1', 'a\0b:1', '10.0.0.3:1'].map((address, index) =>
      note({ id: 'abc'.charAt(index), address, isStarting: false }),
    )
    const outcomes = await Promise.allSettled(beats)
    assert.deepEqual(
      outcomes.map(({ status }) => status),
      ['fulfilled', 'rejected', 'fulfilled'],
    )
    assert.deepEqual(
      (await store.listNodes()).map(({ id }) => id),
      ['a', 'c'],
    )
  })
})
