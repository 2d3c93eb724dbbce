import { NodeService } from '@atoll/contracts/gen/atoll/node/v1/node_pb'
import type { MeasureNodeResponse } from '@atoll/contracts/gen/atoll/node/v1/node_pb'
import { createClient } from '@connectrpc/connect'
import type { Transport } from '@connectrpc/connect'
import type { Counter, Registry } from 'prom-client'
import type { Library } from './library.ts'

const timeoutMs = 5_000

/** Adds metrics of the node: sandboxes, warm pools, memory, disks, egress. Returns the update to await before each scrape. */
export function addNodeMetrics(
  node: Transport,
  library: Pick<Library, 'Counter' | 'Gauge'>,
  registers: Registry[],
): () => Promise<void> {
  const client = createClient(NodeService, node)
  const metrics = defineNodeMetrics(library, registers)
  return async () => {
    const usage = await client.measureNode({}, { timeoutMs }).catch(() => undefined)
    metrics.up.set(usage ? 1 : 0)
    if (usage) update(metrics, usage)
  }
}

type NodeMetrics = ReturnType<typeof defineNodeMetrics>

function defineNodeMetrics(library: Pick<Library, 'Counter' | 'Gauge'>, registers: Registry[]) {
  const gauge = (name: string, help: string, labelNames: readonly string[] = []) =>
    new library.Gauge({ name, help, labelNames, registers })
  const counter = (name: string, help: string, labelNames: readonly string[] = []) =>
    new library.Counter({ name, help, labelNames, registers })

  const sandboxes = gauge('atoll_sandboxes', 'Sandboxes on the node by state', ['state'])
  const target = gauge('atoll_pool_target', 'Pre-warmed sandboxes that the warm pools aim for')
  const takes = counter(
    'atoll_pool_takes_total',
    'Creates that a warm pool could serve, by whether it had a sandbox',
    ['result'],
  )
  const cpus = gauge('atoll_node_cpus', 'CPUs of the node: total, and allocated to sandboxes', [
    'kind',
  ])
  const memory = gauge(
    'atoll_node_memory_bytes',
    'Memory of the node: total, used, and allocated to sandboxes',
    ['kind'],
  )
  const disk = gauge('atoll_node_disk_bytes', 'Disks with data of Atoll: total and used', [
    'mount',
    'kind',
  ])
  const connections = counter(
    'atoll_egress_connections_total',
    'Connections through the egress proxy by decision',
    ['decision'],
  )
  const names = counter('atoll_egress_names_total', 'DNS queries to the egress proxy by decision', [
    'decision',
  ])
  const evictions = counter(
    'atoll_evictions_total',
    'Snapshots and paused sandboxes whose files the node removed, since the object store has them',
  )
  const up = gauge('atoll_node_up', 'Whether the node answered this scrape')
  return { up, sandboxes, target, takes, cpus, memory, disk, connections, names, evictions }
}

function update(metrics: NodeMetrics, usage: MeasureNodeResponse): void {
  const { sandboxes, target, takes, cpus, memory, disk, connections, names, evictions } = metrics
  sandboxes.set({ state: 'running' }, usage.sandboxCount)
  sandboxes.set({ state: 'paused' }, usage.pausedCount)
  const pools = [...usage.pools, ...usage.snapshotPools]
  sandboxes.set({ state: 'ready' }, sum(pools.map(({ ready }) => ready)))
  target.set(sum(pools.map((pool) => pool.target)))
  set(takes, { result: 'hit' }, usage.poolHits)
  set(takes, { result: 'miss' }, usage.poolMisses)
  cpus.set({ kind: 'total' }, usage.cpuCount)
  cpus.set({ kind: 'allocated' }, usage.allocatedCpuCount)
  memory.set({ kind: 'total' }, Number(usage.memoryTotalBytes))
  memory.set({ kind: 'used' }, Number(usage.memoryUsedBytes))
  memory.set({ kind: 'allocated' }, Number(usage.allocatedMemoryBytes))
  for (const { mountPoint: mount, totalBytes, usedBytes } of usage.disks) {
    disk.set({ mount, kind: 'total' }, Number(totalBytes))
    disk.set({ mount, kind: 'used' }, Number(usedBytes))
  }
  const { egress } = usage
  set(connections, { decision: 'allowed' }, egress?.connectionsAllowed ?? 0n)
  set(connections, { decision: 'refused' }, egress?.connectionsRefused ?? 0n)
  set(connections, { decision: 'failed' }, egress?.connectionsFailed ?? 0n)
  set(names, { decision: 'allowed' }, egress?.namesAllowed ?? 0n)
  set(names, { decision: 'refused' }, egress?.namesRefused ?? 0n)
  set(evictions, {}, usage.evictions)
}

/** Counters of the node are totals already. */
function set(metric: Counter, labels: Record<string, string>, total: bigint): void {
  metric.remove(labels)
  metric.inc(labels, Number(total))
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, one) => total + one, 0)
}
