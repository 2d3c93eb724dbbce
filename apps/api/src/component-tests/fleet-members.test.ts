import assert from 'node:assert/strict'
import { test } from 'node:test'
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
