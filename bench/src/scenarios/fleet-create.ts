/** A create through an api and a remote node, with three real nodes on this machine, against a create in one process. */
import { waitFor } from '@atoll/kit/wait'
import { startRig } from '../../../tools/fleet/rig.ts'
import type { Rig } from '../../../tools/fleet/rig.ts'
import { killSandbox } from '../first-output.ts'
import { waitForFullPool } from '../pool.ts'
import { interleave, timed } from '../scenario.ts'
import type { Samples, Scenario } from '../scenario.ts'

const local = 'one process'
const remote = 'api and remote node'
const poolMemoryMb = 1024
const poolLimitMs = 600_000

export const fleetCreate: Scenario = {
  name: 'fleet-create',
  rounds: 30,
  async measure(context) {
    const { testBed, rounds, progress } = context
    const cloud = await testBed.cloud('gvisor', 'pooled')
    progress('starting a fleet of three nodes')
    const settings = { ATOLL_POOL_MEMORY_MB: String(poolMemoryMb) }
    await using rig = await startRig({ apis: 1, edges: 1, nodes: 3, settings })
    const { row } = await interleave(context, [
      async (to: Samples) => {
        await waitForFullPool(cloud)
        await waitForFullPools(rig)
        let id = ''
        const create = async () => void (id = (await cloud.createSandbox()).sandboxID)
        to.record(local, await timed(create))
        await killSandbox(cloud, id)
      },
      async (to: Samples) => {
        await waitForFullPool(cloud)
        await waitForFullPools(rig)
        let id = ''
        const create = async () => void (id = await createSandbox(rig))
        to.record(remote, await timed(create))
        await call(rig, 'DELETE', `/sandboxes/${id}`)
      },
    ])
    return [
      {
        scenario: 'fleet-create',
        description: `POST /v2/sandboxes with full pools until 201, gVisor, ${rounds} rounds, interleaved`,
        rows: [row(local), row(remote, local)],
      },
    ]
  },
}

async function createSandbox(rig: Rig): Promise<string> {
  const text = await call(rig, 'POST', '/v2/sandboxes', { templateID: 'base', timeout: 600 })
  const { sandboxID }: { sandboxID: string } = JSON.parse(text)
  return sandboxID
}

/** Filling a pool takes CPU time from the measurement. */
async function waitForFullPools(rig: Rig): Promise<void> {
  const isFull = async () => {
    const nodes: readonly { readonly pools: readonly Pool[] }[] = JSON.parse(
      await call(rig, 'GET', '/nodes'),
    )
    return nodes.every(({ pools }) =>
      pools.some(({ ready, target }) => target > 0 && ready >= target),
    )
  }
  await waitFor('the pools of the fleet to be full', isFull, {
    timeoutMs: poolLimitMs,
    intervalMs: 200,
  })
}

interface Pool {
  readonly ready: number
  readonly target: number
}

async function call(rig: Rig, method: string, path: string, body?: unknown): Promise<string> {
  const credentials: Record<string, string> =
    path === '/nodes' ? { 'X-Admin-Token': rig.adminToken } : { 'X-API-Key': rig.apiKey }
  const headers = { 'Content-Type': 'application/json', ...credentials }
  const init = { method, headers, body: body === undefined ? null : JSON.stringify(body) }
  const reply = await fetch(`${rig.apis[0]?.url ?? ''}${path}`, init)
  const text = await reply.text()
  if (!reply.ok) throw new Error(`${method} ${path} answers ${reply.status}: ${text}`)
  return text
}
