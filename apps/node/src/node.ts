import { randomUUID } from 'node:crypto'
import { mkdir, realpath } from 'node:fs/promises'
import { ensureKeyFile, keyFileOf } from '@atoll/kit/encryption/key-file'
import type { KeyFile } from '@atoll/kit/encryption/key-file'
import type { KeyRing } from '@atoll/kit/encryption/key-ring'
import type { MeasureStep } from '@atoll/kit/instrument'
import type { Logger } from '@atoll/kit/log'
import type { Transport } from '@connectrpc/connect'
import manifest from '../package.json' with { type: 'json' }
import { sampleSandboxes } from './app/health/usage-samples.ts'
import { createSandboxEvents } from './app/lifecycle/events.ts'
import { createListConnections, createListDenied } from './app/connections/connections.ts'
import type { SandboxEvents } from './app/lifecycle/events.ts'
import type { Reclaimed } from './app/lifecycle/reclaim.ts'
import type { Sandboxes } from './app/lifecycle/sandboxes.ts'
import { adoptCells } from './composition/adoption.ts'
import type { EnvdFiles } from './composition/envd-files.ts'
import type { Host } from './composition/host.ts'
import { measureRuntime } from './composition/measure-runtime.ts'
import { layersDirOf, openNodeFiles } from './composition/node-files.ts'
import { openObjects } from './composition/objects/open-objects.ts'
import { serveObjects } from './composition/objects/with-objects.ts'
import { openImages } from './composition/images.ts'
import { openChanges } from './composition/changes.ts'
import { startLogs, withLastEntries } from './composition/logs.ts'
import { openSandboxes } from './composition/sandboxes.ts'
import { openSlots } from './composition/slots.ts'
import { startSweeping } from './composition/stored-files.ts'
import type { NodeConfig } from './config.ts'
import { startCapture } from './capture.ts'
import type { Capture } from './capture.ts'
import { toInstallation } from './domain/host/installation.ts'
import type { Runtime } from './domain/sandboxes/runtime.ts'
import type { Shape } from './domain/sandboxes/cell.ts'
import { openCgroupUsage } from './linux/cgroups/cgroup-usage.ts'
import type { CgroupUsageReader } from './linux/cgroups/cgroup-usage.ts'
import { createMeasure, readCpu, readMachine } from './linux/machine.ts'
import { ageNsOf } from './linux/processes/process.ts'
import type { RecordReseal } from './state/private-values.ts'
import { startEpoch } from './state/node-identity.ts'
import { serveInMemory } from './rpc/service.ts'
import type { ServiceParts } from './rpc/service.ts'

export interface NodeParts {
  readonly log: Logger
  /** Reports slow work of a first start. */
  readonly progress?: (label: string, fraction: number) => void
  /** Shapes to keep pre-warmed before the first request for them. */
  readonly wanted?: readonly Shape[]
  /** Keys of private values in records. Absent: those of the configured key file. */
  readonly keyRing?: KeyRing
  /** Measures calls of the runtime. */
  readonly measure?: MeasureStep | undefined
}

export interface RunningNode {
  readonly transport: Transport
  /** Seals the private values of all records with the current key. */
  resealRecords(): Promise<RecordReseal>
  /** Begins a backup of this node. Layers stay until the result is disposed. */
  readonly openCapture: OpenCapture
  /** Stops the agent. Sandboxes keep running, and the next agent adopts them. */
  close(): Promise<void>
}

/** `into`: empty folder on the file system of the data directory. */
export type OpenCapture = (into: string) => Promise<Capture & Disposable>

export async function startNode(config: NodeConfig, parts: NodeParts): Promise<RunningNode> {
  const { log } = parts
  await mkdir(config.ATOLL_DATA_DIR, { recursive: true, mode: 0o700 })
  const dataDir = await realpath(config.ATOLL_DATA_DIR)
  const installation = toInstallation(dataDir)
  const keys = parts.keyRing ?? (await ensureKeyFile(toKeyFile(config)))
  await using opened = await openNodeFiles(config, installation, { ...parts, keys })
  const { host, envd } = opened
  const runtime = parts.measure ? measureRuntime(opened.runtime, parts.measure) : opened.runtime
  const identity = await startEpoch(dataDir)
  await resealRecords(host)
  const { files, objects } = await openObjects({ ...opened, config, runtime, log, ...identity })
  const adopted = await adoptCells({ host, runtime, files, envd, log })
  const sweeping = startSweeping(host, files, log)
  const slots = openSlots({ config, host, runtime, adopted, log })
  const events = createLoggedEvents(log)
  const base = { config, host, files, events, log }
  const usage = await openCgroupUsage(installation.cgroup)
  const open = await openSandboxes({
    ...{ ...base, runtime, envd, slots, adopted },
    images: openImages(config, host),
    wanted: parts.wanted ?? [],
    memoryBytes: (cellId) => readMemory(usage, cellId),
    ...{ cpuUsedNs: usage.cpuUsedNs, oomKills: usage.oomKills },
  })
  await logStart(runtime, adopted, log)
  const logging = startLogs({ dataDir, ...open, events, stored: objects?.logs, log })
  const { logs } = logging
  const served = serveObjects(objects, { ...open, ...base, sweeping, logs })
  const { sandboxes, builds } = served
  const transport = serveInMemory(
    {
      sandboxes: withLastEntries(sandboxes, logs),
      ...{ snapshots: host.snapshots, objects: served.access, files: served.files },
      ...{ pools: open.pools, installs: open.installs, builds, logs, events },
      changes: openChanges(host, files, sandboxes),
      ...openConnections(host, sandboxes),
      sample: (sandboxId) => sample(host, sandboxes.running(sandboxId), usage),
      facts: { ...identity, ...(await describeNode(runtime, envd)), hasObjects: !!objects },
      ...{ measure: createMeasure(dataDir), egressDecisions: host.egress.decisionCounts },
      evictions: served.access.evictions,
    },
    log,
  )
  const owned = opened.release()
  return {
    transport,
    resealRecords: () => resealRecords(host),
    openCapture: captureWithout(sweeping, sandboxes, { dataDir, layersDir: layersDirOf(config) }),
    async close() {
      await served.close()
      await sweeping.stop()
      await logging.close()
      await open.close()
      await slots.close()
      host.egress.close()
      await owned.disposeAsync()
    },
  }
}

/** Opens captures during which no layer is swept. */
function captureWithout(
  sweeping: ReturnType<typeof startSweeping>,
  sandboxes: Parameters<typeof startCapture>[1],
  place: { readonly dataDir: string; readonly layersDir: string },
): OpenCapture {
  return async (into) => {
    const hold = await sweeping.hold()
    const capture = startCapture({ ...place, into }, sandboxes)
    return { ...capture, [Symbol.dispose]: () => hold[Symbol.dispose]() }
  }
}

function toKeyFile(config: NodeConfig): KeyFile {
  return keyFileOf(config.ATOLL_DATA_DIR, config.ATOLL_ENCRYPTION_KEY_FILE)
}

async function resealRecords({ records, snapshots }: Host): Promise<RecordReseal> {
  const [cells, copies] = [await records.reseal(), await snapshots.reseal()]
  return {
    resealed: cells.resealed + copies.resealed,
    unreadable: cells.unreadable + copies.unreadable,
  }
}

function openConnections({ firewall }: Host, sandboxes: Pick<Sandboxes, 'running'>) {
  const listConnections = createListConnections({
    sandboxes,
    connections: firewall.connections,
    ageMs({ record }) {
      const ageNs = record.process && ageNsOf(record.process)
      return ageNs === undefined ? undefined : Number(ageNs) / 1e6
    },
    nowMs: Date.now,
  })
  const listDenied = createListDenied({ sandboxes, deniedSince: firewall.deniedSince })
  return { listConnections, listDenied }
}

function createLoggedEvents(log: Logger): SandboxEvents {
  return createSandboxEvents((sandboxId, reason) =>
    log.info({ event: 'sandbox.end', sandboxId, reason }),
  )
}

async function logStart(runtime: Runtime, adopted: Reclaimed, log: Logger): Promise<void> {
  log.info({
    event: 'node.start',
    runtime: runtime.name,
    release: await runtime.release(),
    adopted: adopted.running.length,
    paused: adopted.paused.length,
    ready: adopted.ready.length,
  })
}

async function describeNode(
  runtime: Runtime,
  envd: EnvdFiles,
): Promise<Omit<ServiceParts['facts'], 'nodeId' | 'epoch' | 'hasObjects'>> {
  const memoryFormat = await runtime.memoryFormat()
  return {
    runtime: runtime.name,
    envdVersion: envd.version,
    templateIds: ['base'],
    instanceId: randomUUID(),
    version: manifest.version,
    machine: await readMachine(),
    keepsMemory: memoryFormat !== undefined,
    memoryFormat: memoryFormat ?? '',
    cpuFeatures: (await readCpu()).features,
  }
}

function sample(host: Host, running: ReturnType<Sandboxes['running']>, usage: CgroupUsageReader) {
  return sampleSandboxes(running, {
    readGroup: usage.read,
    readDisks: host.rootfs.usage,
    ageNs: ({ record }) => record.process && ageNsOf(record.process),
    nowNs: process.hrtime.bigint,
  })
}

async function readMemory({ read }: CgroupUsageReader, cellId: string): Promise<number> {
  const usage = await read(cellId)
  return usage ? Number(usage.memoryUsedBytes + usage.memoryCacheBytes) : 0
}
