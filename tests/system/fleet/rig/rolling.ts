/** A change of all parts, one after the other, while clients create, use and kill sandboxes through load balancers. */
import assert from 'node:assert/strict'
import { startBalancer } from '../../../../tools/fleet/balancer.ts'
import type { Part } from '../../../../tools/fleet/part.ts'
import { waitForNodes } from '../../../../tools/fleet/rig.ts'
import type { Rig } from '../../../../tools/fleet/rig.ts'
import { startLoad } from './load.ts'
import type { Failure, Load } from './load.ts'
import { createOn, startProgram, testSettings, until, waitForShell } from './support.ts'

/** Long enough for a machine under any load: these tests are about lost requests, not about time. */
export const rollingSettings = {
  ...testSettings,
  ATOLL_FLEET_DRAIN_SECONDS: '600',
  ATOLL_FLEET_HOLD_SECONDS: '600',
  ATOLL_FLEET_LOST_SECONDS: '3600',
}

/** Applied to a part while it is stopped. */
export interface Change {
  inOrder(parts: readonly Part[]): readonly Part[]
  apply(part: Part): void
}

interface Window {
  readonly from: number
  readonly to: number
}

/**
 * Restarts all parts once for each change. No sandbox may be lost, and no request may fail but commands on an edge that stops.
 */
export async function rollParts(rig: Rig, changes: readonly Change[]): Promise<void> {
  await using apis = await startBalancer(rig.apis.map(({ url }) => url))
  await using edges = await startBalancer(rig.edges.map(({ url }) => url))
  const connection = { apiUrl: apis.url, sandboxUrl: edges.url, apiKey: rig.apiKey }
  const kept = []
  for (const node of rig.nodes) kept.push(await createOn(rig, node, connection))
  const programs = await Promise.all(kept.map(startProgram))

  const load = startLoad(connection, { clients: 2, sandboxes: kept })
  const edgeStops: Window[] = []
  try {
    await waitForUse(load, 10)
    for (const change of changes) {
      for (const part of change.inOrder(rig.parts)) {
        const stopped = await restart(rig, load, { part, change: change.apply })
        if (rig.edges.some((edge) => edge === part)) edgeStops.push(stopped)
      }
    }
  } finally {
    await load.stop()
  }
  const unexpected = load.failures.filter(
    (failure) => failure.what !== 'command' || !isDuring(failure, edgeStops),
  )
  assert.deepEqual(unexpected, [])
  for (const [index, sandbox] of kept.entries())
    assert.equal(await waitForShell(sandbox, programs[index] ?? ''), 'alive\n')
}

/** Returns when the part was stopping. */
async function restart(
  rig: Rig,
  load: Load,
  { part, change }: { readonly part: Part; readonly change: (part: Part) => void },
): Promise<Window> {
  const from = performance.now()
  await part.stop('SIGTERM')
  const stopped = { from, to: performance.now() }
  await waitForUse(load, 2)
  change(part)
  await part.start()
  await waitForNodes(rig)
  await waitForUse(load, 5)
  return stopped
}

function isDuring({ from, to }: Failure, windows: readonly Window[]): boolean {
  return windows.some((window) => from < window.to && to > window.from)
}

/** The load must have met the change, else it proves nothing. */
async function waitForUse(load: Load, count: number): Promise<void> {
  const before = load.done()
  await until(`${count} more operations`, async () => load.done() >= before + count, 900_000)
}
