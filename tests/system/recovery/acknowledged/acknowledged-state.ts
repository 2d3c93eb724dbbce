/** Records the changes that a server has acknowledged, and checks that they survive a crash. */
import assert from 'node:assert/strict'
import { waitFor } from '@atoll/kit/wait'
import type { HttpCloud, HttpSandbox } from '../../http-cloud.ts'
import { envdHeaders, openProcess, outputOf, shell } from '../../http-cloud.ts'
import { readCounter, startCounter } from '../../counter.ts'
import { cells, routedSandboxes } from '../../host-state.ts'
import type { Names } from '../../host-state.ts'

export interface AcknowledgedSandbox {
  readonly sandbox: HttpSandbox
  /** Last known value of the counter in the sandbox. The counter never decreases. */
  count: number
  /** True when the network rules contain domain names, which the egress process enforces. */
  hasNames: boolean
}

export interface AcknowledgedState {
  /** Sandboxes by ID. All are running, except in the middle of a round. */
  readonly sandboxes: Map<string, AcknowledgedSandbox>
  readonly killed: Set<string>
  /** Minimum value of the counter in sandboxes created from a snapshot, by snapshot ID. */
  readonly snapshots: Map<string, number>
  readonly templates: Map<string, Template>
  /** IDs of deleted templates and snapshots. */
  readonly deleted: Set<string>
  /** Current version of each secret, by name. */
  readonly secrets: Map<string, number>
  readonly deletedSecrets: Set<string>
}

export interface Template {
  readonly templateId: string
  /** Content of the file `/mark` in sandboxes of this template. */
  readonly mark: string
}

export const emptyAcknowledgedState = (): AcknowledgedState => ({
  sandboxes: new Map(),
  killed: new Set(),
  snapshots: new Map(),
  templates: new Map(),
  deleted: new Set(),
  secrets: new Map(),
  deletedSecrets: new Set(),
})

/** Time limit for reconciling after a start on a busy machine. */
const reconcileLimitMs = 60_000

/** Fails if an acknowledged change is lost, or if something deleted exists again. */
export async function checkAcknowledgedState(
  acknowledged: AcknowledgedState,
  cloud: HttpCloud,
  names: Names,
): Promise<void> {
  for (const id of acknowledged.sandboxes.keys()) assert.equal(await stateOf(cloud, id), 'running')
  for (const entry of acknowledged.sandboxes.values()) await checkCounter(cloud, entry)
  for (const id of acknowledged.killed) assert.equal(await stateOf(cloud, id), undefined)
  const snapshotIds = new Set((await idsOf(cloud, '/snapshots?limit=100', 'snapshotID')).flat())
  const lostSnapshots = new Set(acknowledged.snapshots.keys()).difference(snapshotIds)
  assert.deepEqual(lostSnapshots, new Set(), 'lost snapshots')
  const templateIds = new Set((await idsOf(cloud, '/templates', 'templateID')).flat())
  const revived = acknowledged.deleted.intersection(snapshotIds.union(templateIds))
  assert.deepEqual(revived, new Set(), 'deleted, but listed')
  for (const [name, { templateId }] of acknowledged.templates) {
    assert.ok(templateIds.has(templateId), `template ${name} is lost`)
  }
  for (const [name, version] of acknowledged.secrets) {
    const { status, json } = await cloud.platform('GET', `/secrets/${name}`)
    assert.deepEqual([name, status, Object(json).currentVersion], [name, 200, version])
  }
  for (const name of acknowledged.deletedSecrets) {
    assert.equal((await cloud.platform('GET', `/secrets/${name}`)).status, 404, name)
  }
  const { length: redirectedCount } = [...acknowledged.sandboxes.values()].filter(
    ({ hasNames }) => hasNames,
  )
  await waitFor(
    `${redirectedCount} sandboxes to be redirected to the egress process`,
    async () => (await routedSandboxes(names)) === redirectedCount,
    { timeoutMs: reconcileLimitMs },
  )
  const expected = new Set(acknowledged.sandboxes.keys())
  await waitFor(
    'the node to have cells for exactly the running sandboxes',
    async () => {
      const owners = (await cells(names.dataDir)).flatMap(({ owner }) => owner ?? [])
      return new Set(owners).symmetricDifference(expected).size === 0
    },
    { timeoutMs: reconcileLimitMs },
  )
}

/** Returns `running` or `paused`; undefined when the sandbox does not exist. */
export async function stateOf(cloud: HttpCloud, id: string): Promise<string | undefined> {
  const { status, json, text } = await cloud.platform('GET', `/sandboxes/${id}`)
  if (status === 404) return undefined
  assert.equal(status, 200, text)
  return Object(json).state
}

async function idsOf(cloud: HttpCloud, path: string, key: string): Promise<string[]> {
  const { status, json, text } = await cloud.platform('GET', path)
  assert.equal(status, 200, text)
  const items: Record<string, string>[] = Object(json)
  return items.map((item) => item[key] ?? '')
}

/** Checks that the same process still counts, from at least the last known value. */
export async function checkCounter(cloud: HttpCloud, entry: AcknowledgedSandbox): Promise<void> {
  const count = await readCounter(cloud.installation.url, entry.sandbox)
  assert.ok(count >= entry.count, `${entry.sandbox.sandboxID}: ${count} < ${entry.count}`)
  entry.count = count
}

/** Adds a running sandbox and starts a counter in it. */
export async function addCountingSandbox(
  acknowledged: AcknowledgedState,
  cloud: HttpCloud,
  sandbox: HttpSandbox,
): Promise<AcknowledgedSandbox> {
  await startCounter(cloud.installation.url, sandbox)
  const entry = { sandbox, count: 0, hasNames: false }
  acknowledged.sandboxes.set(sandbox.sandboxID, entry)
  await checkCounter(cloud, entry)
  return entry
}

/** Runs a script as root and returns its output. */
export async function runScript(
  { installation: { url } }: HttpCloud,
  sandbox: HttpSandbox,
  script: string,
): Promise<string> {
  const stream = await openProcess(url, envdHeaders(sandbox), shell(script), { user: 'root' })
  return outputOf(await stream.readRemaining())
}
