/** Compares the records of the apis with what the nodes have written about their sandboxes. */
import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Rig } from '../../../../tools/fleet/rig.ts'
import { callApi, connectTo, readSandboxes, until } from './support.ts'

/** The promise is 60 s on an idle machine. Tests must also pass on a loaded one. */
const agreementLimitMs = 300_000
const lookMs = 500

/** Each line is an ID and a state. */
async function listRecords(rig: Rig): Promise<string[]> {
  const { status, body } = await callApi(connectTo(rig), 'GET', '/v2/sandboxes?limit=100')
  if (status !== 200) throw new Error(`GET /v2/sandboxes answers ${status}: ${body}`)
  const list: { sandboxID: string; state: string }[] = JSON.parse(body)
  return list.map(({ sandboxID, state }) => `${sandboxID} ${state}`).toSorted()
}

async function listOnNodes(rig: Rig): Promise<string[]> {
  const lists = await Promise.all(rig.nodes.map(readSandboxes))
  return lists
    .flat()
    .map(({ sandboxId, phase }) => `${sandboxId} ${phase}`)
    .toSorted()
}

/** A sandbox on two nodes is in the list of the nodes twice, so this fails for it. Returns the milliseconds until the lists agree. */
export async function waitForAgreement(rig: Rig): Promise<number> {
  const from = performance.now()
  let last: unknown
  const agrees = async () => {
    const records = await listRecords(rig).catch((error: unknown) => [String(error)])
    const onNodes = await listOnNodes(rig)
    last = { records, onNodes }
    return JSON.stringify(records) === JSON.stringify(onNodes)
  }
  await until('records and nodes to agree', agrees, agreementLimitMs).catch((error: unknown) => {
    throw new Error(`records and nodes differ: ${JSON.stringify(last)}`, { cause: error })
  })
  return Math.round(performance.now() - from)
}

/** Kills sandboxes whose client got no answer to its create. */
export async function killOthers(rig: Rig, kept: ReadonlySet<string>): Promise<void> {
  const ids = (await listRecords(rig)).map((line) => line.split(' ')[0] ?? '')
  for (const id of ids.filter((known) => !kept.has(known)))
    assert.equal((await callApi(connectTo(rig), 'DELETE', `/sandboxes/${id}`)).status, 204)
}

export interface DoubleWatch extends AsyncDisposable {
  /** Sandboxes that ran on two nodes at a time. */
  readonly found: readonly string[]
}

/** Looks for sandboxes that run on two nodes, until it is disposed. */
export function watchForDoubles(rig: Rig): DoubleWatch {
  const found: string[] = []
  let isStopped = false
  const watch = async () => {
    while (!isStopped) {
      found.push(...(await findDoubles(rig)))
      await sleep(lookMs)
    }
  }
  const watching = watch()
  return {
    found,
    async [Symbol.asyncDispose]() {
      isStopped = true
      await watching
    },
  }
}

/**
 * Reads all nodes twice. A sandbox keeps its generation while it runs and never gets it back, so two nodes that have it in both
 * readings with the same generations ran it at the same time.
 */
async function findDoubles(rig: Rig): Promise<string[]> {
  const first = await readRunning(rig)
  const counts = Map.groupBy(first, ({ sandboxId }) => sandboxId)
  const suspects = [...counts.values()].filter((places) => places.length > 1).flat()
  if (suspects.length === 0) return []
  const second = new Set((await readRunning(rig)).map(({ place }) => place))
  const still = suspects.filter(({ place }) => second.has(place))
  return [...Map.groupBy(still, ({ sandboxId }) => sandboxId).values()]
    .filter((places) => places.length > 1)
    .map((places) => places.map(({ place }) => place).join(' and '))
}

/** One node after the other: readings at the same time would not distinguish a double from a move. */
async function readRunning(rig: Rig) {
  const running: { readonly sandboxId: string; readonly place: string }[] = []
  for (const node of rig.nodes) {
    for (const { sandboxId, phase, generation } of await readSandboxes(node)) {
      const place = `${sandboxId} on ${node.name} in generation ${generation}`
      if (phase === 'running') running.push({ sandboxId, place })
    }
  }
  return running
}
