import { randomUUID } from 'node:crypto'
import { mkdir, realpath } from 'node:fs/promises'
import { hostname } from 'node:os'
import { basename, dirname, join } from 'node:path'
import type { Logger } from '@atoll/kit/log'
import { repeat } from '@atoll/kit/repeat'
import type { Transport } from '@connectrpc/connect'
import manifest from '../package.json' with { type: 'json' }
import { createSandboxEvents } from './app/lifecycle/events.ts'
import { reclaim } from './app/lifecycle/reclaim.ts'
import { sampleSandboxes } from './app/health/usage-samples.ts'
import { createSlotPool } from './app/pools/slot-pool.ts'
import type { SlotPool } from './app/pools/slot-pool.ts'
import { openSandboxes } from './compose.ts'
import type { NodeConfig } from './config.ts'
import { hasSameParts } from './domain/sandboxes/cell.ts'
import type { CellRecord, Shape } from './domain/sandboxes/cell.ts'
import { toInstance } from './domain/host/installation.ts'
import type { NetworkRules } from './domain/network/network-rules.ts'
import type { Quarantined } from './domain/sandboxes/quarantine.ts'
import type { RunningSandbox } from './domain/sandboxes/sandbox.ts'
import type { Slot } from './domain/network/slot.ts'
import { openDiskSpace } from './disk-space.ts'
import { openHost } from './host.ts'
import { readCertificates } from './net/certificates.ts'
import type { Host } from './host.ts'
import { openCgroupUsage } from './linux/cgroups/cgroup-usage.ts'
import { createMeasure, readMachine } from './linux/machine.ts'
import { checkInodes } from './linux/disks/disk-images.ts'
import { openMountNamespace, stayInMountNamespace } from './linux/mounts/mount-namespace.ts'
import { ageNsOf, isAlive } from './linux/processes/process.ts'
import { mountReadOnly, unmountReadOnly } from './linux/mounts/read-only-mounts.ts'
import { startLogs, withLastEntries } from './logs.ts'
import { checkSubnetIsFree } from './net/free-subnet.ts'
import { createShiftedLayers } from './linux/mounts/shifted-layers.ts'
import { shiftedIds } from './oci/runc.ts'
import { createSkopeo } from './images/skopeo.ts'
import { openScratchDisk } from './scratch-disk.ts'
import { serveInMemory } from './rpc/service.ts'
import { chooseRuntime } from './setup/choose-runtime.ts'
import { ensureBaseTemplate } from './template/base.ts'
import { ensureEnvdRuntime, removeEnvdRuntimes } from './template/envd-runtime.ts'
import { openTemplateFiles } from './template-files.ts'
import type { TemplateFiles } from './template-files.ts'

export interface NodeParts {
  readonly log: Logger
  /** Reports slow work of a first start. */
  readonly progress?: (label: string, fraction: number) => void
  /** Shapes to keep pre-warmed before the first request for them. */
  readonly wanted?: readonly Shape[]
}

export interface RunningNode {
  readonly transport: Transport
  /** Stops the agent. Sandboxes keep running, and the next agent adopts them. */
  close(): Promise<void>
}

export async function startNode(config: NodeConfig, parts: NodeParts): Promise<RunningNode> {
  const { log, progress = () => {} } = parts
  await mkdir(config.ATOLL_DATA_DIR, { recursive: true, mode: 0o700 })
  const instance = toInstance(await realpath(config.ATOLL_DATA_DIR))
  checkSubnetIsFree(config.ATOLL_SUBNET, instance.linkPrefix)
  const caFile = config.ATOLL_EGRESS_CA_FILE
  const certificates = caFile === undefined ? [] : await readCertificates(caFile)
  const runtimeName = await chooseRuntime(config)
  const entered = await openMountNamespace(instance.runDir)
  const layersDir = config.ATOLL_LAYERS_DIR ?? join(instance.dataDir, 'layers')
  const envdDirs = { built: join(instance.dataDir, 'envd'), mounted: join(instance.runDir, 'envd') }
  const [base, envd] = await Promise.all([
    ensureBaseTemplate({
      layersDir,
      progress: (label, fraction) => progress(`base template: ${label}`, fraction),
    }),
    ensureEnvdRuntime({ dir: envdDirs.built }),
  ])
  const envdDir = await mountReadOnly(entered, envd.dir, envdDirs.mounted)
  await using opened = new AsyncDisposableStack()
  // Run the guest from the build folder: a mount with a running program in it cannot be removed.
  const guest = join(envd.dir, 'guest')
  const namespace = opened.use(stayInMountNamespace(instance.runDir, guest))
  const onEgressError = (err: unknown) =>
    log.error(
      { err, event: 'node.egress' },
      'the egress process cannot be started; it is tried again',
    )
  const space = opened.use(await openDiskSpace({ config, instance, namespace, log }))
  const host = openHost(config, instance, { namespace, guest, certificates, space, onEgressError })
  const runtime = host.runtimes[runtimeName]

  const files = await openTemplateFiles({
    instance,
    layersDir: dirname(base.layerDir),
    layer: base.layerId,
    disks: host.disks,
    async removeFolder(dir) {
      const args = ['--recursive', '--force', '--one-file-system', dir]
      await namespace.run('rm', args, { timeoutMs: removeLimitMs })
    },
    async flush(dir) {
      await namespace.run('sync', ['--file-system', dir], { timeoutMs: removeLimitMs })
    },
    shifted: createShiftedLayers({
      namespace,
      dir: join(instance.runDir, 'layers'),
      ...shiftedIds,
    }),
  })
  const current = {
    runtime: runtime.name,
    release: await runtime.release(),
    envd: basename(envdDir),
  }
  const isCurrent = (record: CellRecord) => {
    const made = files.find(record.templateId)
    return made !== undefined && hasSameParts(record, { ...current, ...made })
  }
  const { thaw, dropBootPriority } = host.cgroups
  const adopted = await reclaim(
    {
      ...host,
      isAlive,
      isCurrent,
      thaw: (record) => host.runtimes[record.runtime].thaw(record.cellId),
      thawClaimed: async (cellId) =>
        void (await Promise.all([thaw(cellId), dropBootPriority(cellId)])),
      slotNames: host.slots.list,
      removeSlot: host.slots.remove,
      onError: (err) =>
        log.error({ err, event: 'node.reclaim' }, 'a sandbox that was being copied stands still'),
    },
    host.subnet,
    instance.linkPrefix,
  )
  const live = [...adopted.running, ...adopted.ready]
  await host.firewall.install(
    live.map(({ slot }) => slot),
    rulesOf(adopted.running),
  )
  await host.snapshots.sweep()
  const kept = [
    ...live.map(({ record }) => record),
    ...adopted.paused,
    ...(await host.snapshots.list()),
  ]
  const quarantined = await listQuarantined(host, files)
  for (const { kind, path, reason } of quarantined) {
    log.error(
      { event: 'node.quarantine', kind, path, reason },
      'a record cannot be read; its files are kept and not used',
    )
  }
  // An unreadable record may need any envd.
  if (quarantined.length === 0) {
    await removeUnusedEnvds(host, envdDirs, [basename(envdDir), ...kept.map((one) => one.envd)])
  }
  const stopSweeping = repeat(
    sweepIntervalMs,
    () => sweepFiles(host, files),
    (err) =>
      log.error({ err, event: 'node.sweep' }, 'layers that nothing stands on could not be removed'),
  )

  const usedSlots = [...live.map(({ slot }) => slot), ...adopted.quarantinedSlots]
  const slots = openSlots(config, host, usedSlots, log)
  const events = createSandboxEvents((sandboxId, reason) =>
    log.info({ event: 'sandbox.end', sandboxId, reason }),
  )
  const { read: readGroup, cpuUsedNs, oomKills } = await openCgroupUsage(instance.cgroup)
  const open = await openSandboxes({
    config,
    host,
    runtime,
    files,
    images: createSkopeo({
      runner: namespace,
      registries: config.ATOLL_REGISTRIES,
      openScratch: () => openScratchDisk(host),
      async checkRoom(bytes, count) {
        using _room = host.disks.holdRoom(bytes, 'keeping this layer')
        await checkInodes(instance.dataDir, count, 'keeping this layer')
      },
    }),
    envdDir,
    envdDirs,
    slots,
    events,
    adopted,
    wanted: parts.wanted ?? [],
    async memoryBytes(cellId) {
      const usage = await readGroup(cellId)
      return usage ? Number(usage.memoryUsedBytes + usage.memoryCacheBytes) : 0
    },
    cpuUsedNs,
    oomKills,
    log,
  })
  const { sandboxes, pools, builds } = open
  log.info({
    event: 'node.start',
    runtime: runtime.name,
    release: current.release,
    adopted: adopted.running.length,
    paused: adopted.paused.length,
    ready: adopted.ready.length,
  })

  const facts = {
    nodeId: hostname(),
    runtime: runtime.name,
    envdVersion: envd.version,
    templateIds: ['base'],
    instanceId: randomUUID(),
    version: manifest.version,
    machine: await readMachine(),
    keepsMemory: (await runtime.memoryFormat()) !== undefined,
  }
  const measure = createMeasure(instance.dataDir)
  const sample = (sandboxId?: string) =>
    sampleSandboxes(sandboxes.running(sandboxId), {
      readGroup,
      readDisks: host.rootfs.usage,
      ageNs: ({ record }) => record.process && ageNsOf(record.process),
      nowNs: process.hrtime.bigint,
    })
  const logging = startLogs({ dataDir: instance.dataDir, ...open, events, log })
  const { logs } = logging
  const service = {
    sandboxes: withLastEntries(sandboxes, logs),
    snapshots: host.snapshots,
    pools,
    builds,
    files,
    logs,
    events,
    sample,
    facts,
    measure,
  }
  const owned = opened.move()
  return {
    transport: serveInMemory(service, log),
    async close() {
      await stopSweeping()
      await logging.close()
      await open.close()
      await slots.close()
      host.egress.close()
      await owned.disposeAsync()
    },
  }
}

async function listQuarantined(host: Host, files: TemplateFiles): Promise<Quarantined[]> {
  return [
    ...(await host.records.list()).flatMap((entry) => entry.quarantined ?? []),
    ...(await host.snapshots.listQuarantined()),
    ...files.templates.listQuarantined(),
    ...files.layers.listQuarantined(),
  ]
}

/**
 * Removes unused layers and archives. Cells that are being made count as users: their record exists before they need
 * the layer.
 */
async function sweepFiles(host: Host, files: TemplateFiles): Promise<void> {
  // An unreadable record may need any layer.
  if ((await listQuarantined(host, files)).length > 0) return
  const records = (await host.records.list()).flatMap(({ record }) => record ?? [])
  const kept = [...records, ...(await host.snapshots.list())]
  await files.sweep(kept.map(({ layer }) => layer))
}

const sweepIntervalMs = 600_000
/** Millions of files may have to be removed. */
const removeLimitMs = 600_000

function openSlots(config: NodeConfig, host: Host, used: readonly Slot[], log: Logger): SlotPool {
  return createSlotPool({
    ports: {
      // Add the firewall rules before the veth pair exists.
      make: async (slot) => {
        await host.firewall.admit(slot)
        await host.slots.make(slot)
      },
      remove: async (slot) => {
        await host.slots.remove(slot)
        await host.firewall.expel(slot)
      },
    },
    subnet: host.subnet,
    linkPrefix: host.instance.linkPrefix,
    ready: config.ATOLL_READY_SLOTS,
    inUse: used.map(({ number }) => number),
    onError: (err) =>
      log.error({ err, event: 'node.slots' }, 'a network slot could not be prepared'),
  })
}

function rulesOf(running: readonly RunningSandbox[]): ReadonlyMap<number, NetworkRules> {
  return new Map(
    running.flatMap(({ record, slot }) =>
      record.owner.network ? [[slot.number, record.owner.network] as const] : [],
    ),
  )
}

async function removeUnusedEnvds(
  { namespace }: Host,
  dirs: { readonly built: string; readonly mounted: string },
  used: readonly string[],
): Promise<void> {
  const inUse = new Set(used)
  await unmountReadOnly(namespace, dirs.mounted, inUse)
  await removeEnvdRuntimes(dirs.built, inUse)
}
