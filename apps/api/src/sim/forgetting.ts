import assert from 'node:assert/strict'
import { waitFor } from '@atoll/kit/wait'
import { simulateNode } from '@atoll/simulated-node/node'
import { simulateObjects } from '@atoll/simulated-node/objects'
import { Code } from '@connectrpc/connect'
import { createMembership } from '../app/fleet/membership.ts'
import type { Sandbox } from '../domain/sandboxes/sandbox.ts'
import { isDurable } from '../domain/sandboxes/sandbox-pause.ts'
import { fleetWithoutNodes, manualClock, startApiUnderTest } from './api.ts'
import type { ApiUnderTest } from './api.ts'

const adminToken = 'operators-only-token'
const headers = { 'x-admin-token': adminToken }

/** Two nodes. The first one is a member that sends no heartbeats from now on; `lose` also takes it off the network. */
export async function setUpForgetting(options: { readonly hasObjects?: boolean } = {}) {
  const fleet = await startMembers(options)
  const { api, clock, first, objects, setStatus, untilReached } = fleet
  const forget = (id = 'first') => api.call('POST', `/fleet/members/${id}/forget`, { headers })
  const record = async (id: string) => {
    const found = await api.withStores(({ sandboxes }) => sandboxes.find(id))
    return found ?? assert.fail(`no record of ${id}`)
  }
  return {
    ...{ ...fleet, forget, record },
    endUploads: () => void (objects.set = () => objects),
    /** Uploads all that the first node has, without the node saying so. */
    uploadUnseen() {
      Reflect.deleteProperty(objects, 'set')
      for (const [id, paused] of first.paused) objects.set(`${id}.${paused.keptGeneration}`, paused)
      for (const [id, snapshot] of first.snapshots) objects.snapshots.set(id, snapshot)
      for (const id of first.builds.templates) objects.templates.add(id)
    },
    change: (id: string, how: (sandbox: Sandbox) => Sandbox) =>
      api.withStores(({ sandboxes }) => sandboxes.update(id, how)),
    async pause(id: string) {
      assert.equal((await api.call('POST', `/sandboxes/${id}/pause`)).status, 204)
    },
    /** Pauses without an upload. The record names the content at once. */
    async pauseLocally(id: string) {
      objects.set = () => objects
      assert.equal((await api.call('POST', `/sandboxes/${id}/pause`)).status, 204)
      assert.notEqual((await record(id)).keptId, undefined)
    },
    async untilDurable(id: string) {
      await waitFor('the upload', async () => isDurable(await record(id)))
    },
    async lose() {
      first.failAll(Code.Unavailable)
      await setStatus('second', 'ready')
      await api.restart()
      clock.advance(61)
    },
    /** Forgets the node as a client does. Returns the sums. */
    async forgetAll() {
      await untilReached()
      return addUp(forget, clock)
    },
    [Symbol.asyncDispose]: () => api[Symbol.asyncDispose](),
  }
}

async function startMembers({ hasObjects = true }: { readonly hasObjects?: boolean }) {
  const objects = simulateObjects()
  const simulate = (id: string) => simulateNode(undefined, id, hasObjects ? objects : undefined)
  const [first, second] = [simulate('first'), simulate('second')]
  const clock = manualClock(new Date().toISOString())
  const api = await startApiUnderTest({
    ...{ node: first, others: [second], clock, env: { ATOLL_ADMIN_TOKEN: adminToken } },
    fleet: { ...fleetWithoutNodes, connect: () => ({ transport: first.transport, close() {} }) },
  })
  const setStatus = async (id: string, status: string) => {
    const { status: code } = await api.call('POST', `/nodes/${id}`, { headers, body: { status } })
    assert.equal(code, 204)
  }
  await setStatus('second', 'draining')
  await api.withStores(async ({ fleet: store }) => {
    const membership = createMembership({ store, clock })
    const { secret } = await membership.createToken('node')
    await membership.join({ secret, role: 'node', id: 'first' })
    await store.noteHeartbeats([{ id: 'first', address: 'h:1', isStarting: false }], clock.now())
  })
  /** An api that was restarted does not know at once that the second node has an object store. */
  const untilReached = () =>
    waitFor('the second node', async () => {
      const { json } = await api.call('GET', '/nodes/second', { headers })
      return Object(json).status === 'ready'
    })
  return { api, clock, first, second, objects, setStatus, untilReached }
}

async function addUp(
  forget: () => ReturnType<ApiUnderTest['call']>,
  clock: Pick<ReturnType<typeof manualClock>, 'advance'>,
) {
  const sums: Record<string, number> = {}
  for (;;) {
    const { status, json, text } = await forget()
    assert.equal(status, 200, text)
    const { isDone, ...counts } = Object(json)
    for (const [name, count] of Object.entries<number>(counts)) {
      sums[name] = (sums[name] ?? 0) + count
    }
    if (isDone) return sums
    clock.advance(11)
  }
}
