import assert from 'node:assert/strict'
import { waitFor } from '@atoll/kit/wait'
import { simulateNode } from '@atoll/simulated-node/node'
import type { SimulatedNode } from '@atoll/simulated-node/node'
import { simulateObjects } from '@atoll/simulated-node/objects'
import { Code } from '@connectrpc/connect'
import { isDurable } from '../domain/sandboxes/sandbox-pause.ts'
import { fleetWithoutNodes, startApiUnderTest } from './api.ts'
import type { ApiUnderTest } from './api.ts'

const token = 'operators-only-token'
const env = { ATOLL_ADMIN_TOKEN: token }

interface MoveOptions {
  /** Nodes with access to the object store. Default: both. */
  readonly withObjects?: readonly ('first' | 'second')[]
  /** Whether the api reads heartbeats of the first node. */
  readonly isFleet?: boolean
}

/** Two nodes, and a sandbox on the first. */
export async function setUpMoves(options: MoveOptions = {}) {
  const { withObjects = ['first', 'second'], isFleet = false } = options
  const objects = simulateObjects()
  const simulate = (id: 'first' | 'second') =>
    simulateNode(undefined, id, withObjects.includes(id) ? objects : undefined)
  const [first, second] = [simulate('first'), simulate('second')]
  const connect = () => ({ transport: first.transport, close() {} })
  const api = await startApiUnderTest({
    ...{ env, node: first, others: [second] },
    ...(isFleet && { fleet: { ...fleetWithoutNodes, connect } }),
  })
  const setStatus = async (id: string, status: 'ready' | 'draining') => {
    const request = { headers: { 'x-admin-token': token }, body: { status } }
    assert.equal((await api.call('POST', `/nodes/${id}`, request)).status, 204)
  }
  const nodeStatus = async (id: string): Promise<unknown> => {
    const { json } = await api.call('GET', `/nodes/${id}`, { headers: { 'x-admin-token': token } })
    return Object(json).status
  }
  await setStatus('second', 'draining')
  const id = await api.create({ timeout: 3600 })
  await setStatus('second', 'ready')
  const record = () => api.withStores(({ sandboxes }) => sandboxes.find(id))
  const resume = () => api.call('POST', `/sandboxes/${id}/connect`, { body: { timeout: 60 } })
  const pause = async () => {
    assert.equal((await api.call('POST', `/sandboxes/${id}/pause`)).status, 204)
  }
  const waitUntilDurable = () =>
    waitFor('the note about the upload', async () => {
      const found = await record()
      return found !== undefined && isDurable(found)
    })
  return {
    ...{ api, first, second, objects, id, setStatus, nodeStatus },
    ...{ record, resume, pause, waitUntilDurable },
    [Symbol.asyncDispose]: () => api[Symbol.asyncDispose](),
  }
}

/** Ends all connections and waits until the api does not reach the node any more. */
export async function lose(api: ApiUnderTest, node: SimulatedNode): Promise<void> {
  node.failAll(Code.Unavailable)
  await api.restart()
}
