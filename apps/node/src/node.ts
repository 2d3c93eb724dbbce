import { randomUUID } from 'node:crypto'
import { mkdir, realpath, rm, stat } from 'node:fs/promises'
import { hostname, totalmem } from 'node:os'
import { basename, join } from 'node:path'
import type { Logger } from '@atoll/kit/log'
import { repeat } from '@atoll/kit/repeat'
import type { Transport } from '@connectrpc/connect'
import manifest from '../package.json' with { type: 'json' }
import { createCells } from './app/cells.ts'
import type { Rootfs } from './app/cells.ts'
import { createCopies } from './app/copies.ts'
import { createSandboxEvents } from './app/events.ts'
import { createPrototypes } from './app/prototypes.ts'
import { reclaim } from './app/reclaim.ts'
import { sampleSandboxes } from './app/sample.ts'
import { createSandboxes } from './app/sandboxes.ts'
import { createSlotPool } from './app/slot-pool.ts'
import type { SlotPool } from './app/slot-pool.ts'
import { createSupply } from './app/supply.ts'
import type { NodeConfig } from './config.ts'
import type { Cell, CellRecord, Shape } from './domain/cell.ts'
import { cellDir, memoryDir, toInstance } from './domain/instance.ts'
import type { NetworkRules } from './domain/network-rules.ts'
import type { RunningSandbox, Runtime } from './domain/sandbox.ts'
import { introduceEnvd, prepareEnvd } from './envd/introduce.ts'
import { openHost } from './host.ts'
import type { Host } from './host.ts'
import { openCgroupUsage } from './linux/cgroup-usage.ts'
import { flushFolder } from './linux/disks.ts'
import { createMemoryFolders } from './linux/memory-folders.ts'
import { createMeasure, freeMemoryBytes, readMachine } from './linux/machine.ts'
import { openMountNamespace } from './linux/mount-namespace.ts'
import { ageNsOf, isAlive } from './linux/process.ts'
import { mountReadOnly, unmountReadOnly } from './linux/read-only.ts'
import { createShiftedLayers } from './linux/shifted-layers.ts'
import { startLogs, withLastEntries } from './logs.ts'
import { checkSubnetIsFree } from './net/free-subnet.ts'
import { shiftedIds } from './oci/runc.ts'
import { serveInMemory } from './rpc/service.ts'
import { chooseRuntime } from './setup/choose-runtime.ts'
import { ensureBaseTemplate } from './template/base.ts'
import { ensureEnvdRuntime, removeEnvdRuntimes } from './template/envd-runtime.ts'

export interface NodeParts {
  readonly log: Logger
  /** Told of work that takes long at a first start. */
  readonly progress?: (label: string, fraction: number) => void
  /** Shapes that are worth keeping ready before anybody has asked for one. */
  readonly wanted?: readonly Shape[]
}

export interface RunningNode {
  readonly transport: Transport
  /** Stops the agent; sandboxes go on and are adopted by the next one. */
  close(): Promise<void>
}

/** How often the first processes of sandboxes are looked at. A look at one costs microseconds. */
const reapIntervalMs = 250
/** Who comes back within this time finds memory as it was written, which is quicker to read. */
const packAfterMs = 120_000
const packIntervalMs = 15_000

export async function startNode(config: NodeConfig, parts: NodeParts): Promise<RunningNode> {
  const { log, progress = () => {} } = parts
  await mkdir(config.ATOLL_DATA_DIR, { recursive: true, mode: 0o700 })
  const instance = toInstance(await realpath(config.ATOLL_DATA_DIR))
  checkSubnetIsFree(config.ATOLL_SUBNET, instance.linkPrefix)
  const namespace = await openMountNamespace(instance.runDir)
  const host = openHost(config, instance, namespace)
  const runtime = host.runtimes[await chooseRuntime(config.ATOLL_RUNTIME)]
  const layersDir = config.ATOLL_LAYERS_DIR ?? join(instance.dataDir, 'layers')
  const envdDirs = { built: join(instance.dataDir, 'envd'), mounted: join(instance.runDir, 'envd') }
  const [base, envd] = await Promise.all([
    ensureBaseTemplate({
      layersDir,
      progress: (label, fraction) => progress(`base template: ${label}`, fraction),
    }),
    ensureEnvdRuntime({ dir: envdDirs.built }),
  ])
  const envdDir = await mountReadOnly(namespace, envd.dir, envdDirs.mounted)

  const memoryFormat = await runtime.memoryFormat()
  const adopted = await reclaim(
    {
      ...host,
      isAlive,
      isCurrent: ({ envd: build }) => build === basename(envdDir),
      thaw: runtime.thaw,
      slotNames: host.slots.list,
      removeSlot: host.slots.remove,
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
  await removeUnusedEnvds(host, envdDirs, [
    basename(envdDir),
    ...[...live.map(({ record }) => record), ...adopted.paused].map((record) => record.envd),
    ...(await host.snapshots.list()).map((snapshot) => snapshot.envd),
  ])

  const slots = openSlots(config, host, live, log)
  const events = createSandboxEvents((sandboxId, reason) =>
    log.info({ event: 'sandbox.end', sandboxId, reason }),
  )
  const places = {
    bundleDir: (cellId: string) => join(cellDir(instance, cellId), 'bundle'),
    diskImage: (cellId: string, name: string) => join(cellDir(instance, cellId), name),
    memoryDir: (cellId: string) => memoryDir(instance, cellId),
  }
  const { read: readGroup } = await openCgroupUsage(instance.cgroup)
  const memoryBytes = async (cellId: string) => {
    const usage = await readGroup(cellId)
    return usage ? Number(usage.memoryUsedBytes + usage.memoryCacheBytes) : 0
  }
  const { records, disks, snapshots } = host
  const memory = createMemoryFolders(() => performance.now())
  const cells = createCells({
    slots,
    ports: {
      ...places,
      records,
      runtime,
      disks,
      mountRootfs: mountBase(config, host, runtime, base.layerDir),
      useMemory: memory.use,
      envdDir,
      findEnvd: (name) => mountReadOnly(namespace, join(envdDirs.built, name), envdDirs.mounted),
      halt: host.halt,
      erase: host.erase,
    },
  })
  const copies = createCopies({
    ...places,
    records,
    runtime,
    disks,
    memoryBytes,
    syncDisk: host.rootfs.sync,
    flushFolder,
    removeFolder: (dir) => rm(dir, { recursive: true, force: true }),
  })
  const lives = ({ record }: Cell) => record.process !== undefined && isAlive(record.process)
  const prepare = (cell: Cell) =>
    prepareEnvd(cell.slot.sandboxAddress, cell.record.initToken, { isAlive: () => lives(cell) })
  const prototypes = createPrototypes({
    cells,
    store: host.prototypes,
    memoryFormat,
    envdDir,
    async save(cell, snapshotId, store) {
      await prepare(cell)
      return copies.snapshot(cell, snapshotId, store)
    },
  })
  const known = await prototypes.open()
  log.info({ event: 'node.prototypes', known: known.length })
  const supply = createSupply({
    cells,
    prototypes,
    budgetBytes: poolBytes(config),
    floors: (parts.wanted ?? []).map((shape) => ({ shape, count: config.ATOLL_READY_SANDBOXES })),
    adopted: adopted.ready,
    ports: {
      records,
      prepare,
      freeze: host.cgroups.freeze,
      thaw: host.cgroups.thaw,
      isAlive: lives,
      memoryBytes,
      freeMemoryBytes,
      nowMs: () => performance.now(),
      onError: (err) =>
        log.error({ err, event: 'node.supply' }, 'a sandbox could not be made ahead'),
    },
  })
  const sandboxes = createSandboxes({
    cells,
    copies,
    supply,
    slots,
    events,
    adopted,
    ports: {
      ...places,
      records,
      runtime,
      disks,
      snapshots,
      introduce: (slot, initToken, introduction, alive) =>
        introduceEnvd(slot.sandboxAddress, initToken, introduction, { isAlive: alive }),
      setRules: host.firewall.setRules,
      isAlive,
      oomKills: host.cgroups.oomKills,
      tidy: host.tidy,
      erase: host.erase,
    },
  })
  const stopReaping = repeat(reapIntervalMs, sandboxes.reap, (err) =>
    log.error({ err, event: 'node.reap' }, 'a dead sandbox could not be removed'),
  )
  const packIdle = async () => {
    const paused = sandboxes.paused().map(({ cellId }) => places.memoryDir(cellId))
    const kept = (await snapshots.list()).map((one) => snapshots.place(one.snapshotId).memoryDir)
    await memory.packIdle([...paused, ...kept], packAfterMs)
  }
  const stopPacking = repeat(packIntervalMs, packIdle, (err) =>
    log.error({ err, event: 'node.pack' }, 'memory on disk could not be packed'),
  )
  log.info({
    event: 'node.start',
    runtime: runtime.name,
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
    keepsMemory: memoryFormat !== undefined,
  }
  const measure = createMeasure(instance.dataDir)
  const sample = () =>
    sampleSandboxes({
      list: sandboxes.running,
      readGroup,
      readDisks: host.rootfs.usage,
      ageNs: ({ record }) => record.process && ageNsOf(record.process),
      nowNs: process.hrtime.bigint,
    })
  const logging = startLogs({ dataDir: instance.dataDir, sandboxes, events, log })
  const { logs } = logging
  const service = {
    sandboxes: withLastEntries(sandboxes, logs),
    snapshots,
    supply,
    logs,
    events,
    sample,
    facts,
    measure,
  }
  return {
    transport: serveInMemory(service, log),
    async close() {
      await stopReaping()
      // What is half packed is not missed.
      void stopPacking()
      await logging.close()
      await supply.close()
      await sandboxes.settle()
      await slots.close()
    },
  }
}

function openSlots(config: NodeConfig, host: Host, live: readonly Cell[], log: Logger): SlotPool {
  return createSlotPool({
    ports: {
      // The rules know the slot before it has a cable.
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
    inUse: live.map(({ slot }) => slot.number),
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

function poolBytes({ ATOLL_POOL_MEMORY_MB: megabytes }: NodeConfig): number {
  return megabytes === undefined ? totalmem() / 10 : megabytes * 1024 * 1024
}

/** The built-in template is one layer; as yet there are no others. */
function mountBase(
  config: NodeConfig,
  host: Host,
  runtime: Runtime,
  layerDir: string,
): (cell: CellRecord, image: string) => Promise<Rootfs | undefined> {
  const shifted = createShiftedLayers({
    namespace: host.namespace,
    dir: join(host.instance.runDir, 'layers'),
    ...shiftedIds,
  })
  return async ({ cellId, templateId }, image) => {
    if (templateId !== 'base') return undefined
    const layer = runtime.idShift === 0 ? layerDir : await shifted.ensure(layerDir)
    const path = await host.rootfs.mount({
      cellId,
      image,
      layers: [layer],
      nameservers: config.ATOLL_NAMESERVERS,
      idShift: runtime.idShift,
    })
    return { path, hasSudo: await exists(join(layerDir, 'usr/bin/sudo')) }
  }
}

function exists(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    () => false,
  )
}
