import { rm } from 'node:fs/promises'
import { totalmem } from 'node:os'
import { join } from 'node:path'
import { createAuthority } from '@atoll/egress/authority'
import { limitConcurrency } from '@atoll/kit/limit-concurrency'
import type { Logger } from '@atoll/kit/log'
import { repeat } from '@atoll/kit/repeat'
import { createRunStartCommand, launchStartCommand } from './app/lifecycle/start-command.ts'
import { createBuildTemplate } from './app/builds/build-template.ts'
import { createBuilds } from './app/builds/builds.ts'
import type { Builds } from './app/builds/builds.ts'
import { createCells } from './app/lifecycle/cells.ts'
import { createCopies } from './app/lifecycle/copies.ts'
import type { SandboxEvents } from './app/lifecycle/events.ts'
import { createHangDetector } from './app/health/hung-sandboxes.ts'
import { createOomRecovery } from './app/health/oom-recovery.ts'
import { createPrototypes } from './app/pools/prototypes.ts'
import type { Reclaimed } from './app/lifecycle/reclaim.ts'
import { createIdleThrottle } from './app/health/idle-throttle.ts'
import { createSandboxes } from './app/lifecycle/sandboxes.ts'
import type { Sandboxes } from './app/lifecycle/sandboxes.ts'
import type { SlotPool } from './app/pools/slot-pool.ts'
import { createFreezes } from './app/lifecycle/freezes.ts'
import { createWarmPools } from './app/pools/warm-pools.ts'
import type { WarmPools } from './app/pools/warm-pools.ts'
import type { NodeConfig } from './config.ts'
import type { Cell, CellRecord, Shape } from './domain/sandboxes/cell.ts'
import { cellDir, memoryDir } from './domain/host/installation.ts'
import type { Images } from './domain/builds/image.ts'
import { checksPerSecond } from './domain/sandboxes/idle-level.ts'
import type { EnvdInit } from './domain/sandboxes/sandbox.ts'
import type { Slot } from './domain/network/slot.ts'
import { envdCommands } from './envd/commands.ts'
import { initEnvd, prepareEnvd, trustCertificate } from './envd/init.ts'
import { isUp } from './envd/status.ts'
import type { Host } from './host.ts'
import { flushFolder, folderBytes } from './linux/disks/disk-images.ts'
import { freeMemoryBytes } from './linux/machine.ts'
import { createMemoryFolders } from './linux/files/memory-folders.ts'
import { isAlive, isStopped, killIfAlive } from './linux/processes/process.ts'
import { endHalfOpen } from './net/half-open.ts'
import { createReadOnlyMounts } from './linux/mounts/read-only-mounts.ts'
import type { TemplateFiles } from './template-files.ts'
import { createTemplateRootfs } from './template-rootfs.ts'
import type { Runtime } from './domain/sandboxes/runtime.ts'
import { createAssignIdentity } from './app/lifecycle/assign-identity.ts'

export interface SandboxParts {
  readonly config: NodeConfig
  readonly host: Host
  readonly runtime: Runtime
  readonly files: TemplateFiles
  readonly images: Images
  readonly envdDir: string
  readonly envdDirs: { readonly built: string; readonly mounted: string }
  readonly slots: SlotPool
  readonly events: SandboxEvents
  readonly adopted: Reclaimed
  /** Shapes to keep pre-warmed before the first request for them. */
  readonly wanted: readonly Shape[]
  memoryBytes(cellId: string): Promise<number>
  cpuUsedNs(cellId: string): bigint | undefined
  oomKills(cellId: string): number
  readonly log: Logger
}

export interface RunningSandboxes {
  readonly sandboxes: Sandboxes
  readonly pools: WarmPools
  readonly builds: Builds
  isAsleep(cellId: string): boolean
  close(): Promise<void>
}

/** Interval between liveness checks of sandboxes. Checking one sandbox costs microseconds. */
const reapIntervalMs = 250
/** Interval between checks of stuck frozen sandboxes; each sandbox backs off on its own. */
const unfreezeIntervalMs = 250
/** Memory stays uncompressed for this long, since an early resume reads it faster that way. */
const packAfterMs = 120_000
const packIntervalMs = 15_000
/** Pre-warmed sandboxes take memory that others may need. */
const trimIntervalMs = 15_000
const prototypeIntervalMs = 600_000
const restIntervalMs = 1000 / checksPerSecond
const hangIntervalMs = 1000
/** Limit, because after a restart every sandbox that ever had an OOM kill is roused at once. */
const rousedAtOnce = 2
/** Only has to start the template's program, not to wait for it. */
const startLimitMs = 10_000

/** Wires up everything that makes, keeps and ends sandboxes, and starts the background loops. */
export async function openSandboxes(parts: SandboxParts): Promise<RunningSandboxes> {
  const { config, host, runtime, files, envdDir, envdDirs, slots, adopted, log } = parts
  const { instance, namespace, records, disks, snapshots, space } = host
  const nowMs = () => performance.now()
  const memory = createMemoryFolders(nowMs)
  const common = {
    records,
    runtime,
    disks,
    memoryBytes: parts.memoryBytes,
    bundleDir: (cellId: string) => join(cellDir(instance, cellId), 'bundle'),
    setRules: host.firewall.setRules,
    createAuthority,
    trust: ({ record, slot }: Cell, certificate: string) =>
      trustCertificate(slot.sandboxAddress, record.initToken, certificate),
    admitDisk: space.admitDisk,
    checkDisk: (sizeMb = 0) =>
      space.checkSandbox({ diskBytes: sizeMb * 1024 ** 2, committedBytes }),
    diskImage: (cellId: string, name: string) => join(cellDir(instance, cellId), name),
    memoryDir: (cellId: string) => memoryDir(instance, cellId),
  }
  const cells = createCells({
    slots,
    ports: {
      ...common,
      mountRootfs: createTemplateRootfs({
        ...host,
        runtime,
        ...files,
        nameservers: config.ATOLL_NAMESERVERS,
      }),
      useMemory: memory.use,
      findTemplate: files.findReadable,
      envdDir,
      findEnvd: createReadOnlyMounts(namespace, envdDirs.built, envdDirs.mounted),
      halt: host.halt,
      erase: host.erase,
    },
  })
  const freezes = createFreezes({
    records,
    // An earlier run of the node may have used the other runtime.
    freeze: (record) => host.runtimes[record.runtime].freeze(record.cellId),
    thaw: (record) => host.runtimes[record.runtime].thaw(record.cellId),
    isStopped: (record) => isStopped(record.process),
    nowMs,
    onStuck: ({ record }, { error, attempt, waitMs }) =>
      log.error(
        { err: error, event: 'node.unfreeze', ...namesOf(record), attempt, waitMs },
        'a sandbox that was being copied stands still; it is tried again',
      ),
    onThawed: ({ record }) =>
      log.info(
        { event: 'node.unfreeze', ...namesOf(record) },
        'a sandbox that stood still goes on',
      ),
  })
  adopted.stuck.forEach(freezes.adopt)
  const copies = createCopies(
    {
      ...common,
      syncDisk: host.rootfs.sync,
      flushFolder,
      removeFolder: (dir) => rm(dir, { recursive: true, force: true }),
      endHalfOpen: ({ sandboxAddress }) => endHalfOpen(sandboxAddress),
    },
    freezes,
  )
  const telling = {
    runtime,
    initEnvd: (slot: Slot, initToken: string, init: EnvdInit, isStillWanted: () => boolean) =>
      initEnvd(slot.sandboxAddress, initToken, init, { isAlive: isStillWanted }),
    isAlive,
  }
  const assignIdentity = createAssignIdentity(telling)
  const runStartCommand = createRunStartCommand({
    assignIdentity,
    commands: envdCommands,
    dropBootPriority: host.cgroups.dropBootPriority,
  })
  const prototypes = createPrototypes({
    cells,
    store: host.prototypes,
    memoryFormat: await runtime.memoryFormat(),
    findTemplate: files.find,
    envdDir,
    runStartCommand,
    nowMs,
    async save(cell, snapshotId, store) {
      await prepare(cell)
      return copies.snapshot(cell, snapshotId, store)
    },
  })
  await prototypes.open()
  const pools = createWarmPools({
    cells,
    prototypes,
    budgetBytes: poolBytes(config),
    floors: parts.wanted.map((shape) => ({ shape, count: config.ATOLL_READY_SANDBOXES })),
    adopted: adopted.ready,
    ports: {
      ...common,
      prepare,
      assignIdentity,
      runStartCommand,
      findTemplate: files.findReadable,
      freeze: host.cgroups.freeze,
      async thaw(cellId) {
        // Throw here: a frozen process counts as alive, so no other check would notice.
        if (!(await host.cgroups.thaw(cellId))) throw new Error(`${cellId} cannot be let go on`)
      },
      isAlive: lives,
      freeMemoryBytes,
      nowMs,
      onError: (err) =>
        log.error({ err, event: 'node.supply' }, 'a sandbox could not be made ahead'),
    },
  })
  const sandboxes = createSandboxes({
    cells,
    copies,
    freezes,
    pools,
    slots,
    events: parts.events,
    adopted,
    ports: {
      ...common,
      ...telling,
      snapshots,
      dropBootPriority: host.cgroups.dropBootPriority,
      oomKills: parts.oomKills,
      keptBytes: async ({ cellId, disk }) =>
        (await disks.usedBytes(common.diskImage(cellId, disk))) +
        (await folderBytes(common.memoryDir(cellId))),
      tidy: host.tidy,
      erase: host.erase,
      halt: host.halt,
      endProcess: (record) => killIfAlive(record.process),
      async launchStartCommand({ record, slot }, accessToken) {
        const endpoint = { address: slot.sandboxAddress, accessToken }
        const limit = AbortSignal.timeout(startLimitMs)
        // The owner may have deleted the program. The rest of the sandbox still works, so only log the error.
        await launchStartCommand(envdCommands, endpoint, record.setup, limit).catch(
          (err: unknown) => {
            log.info({ err, event: 'node.start-program', ...namesOf(record) })
          },
        )
      },
    },
  })
  /** Runs first when a sandbox is created; `sandboxes` is assigned by then. */
  function committedBytes(): number {
    const kept = [...sandboxes.running().map(({ record }) => record), ...sandboxes.paused()]
    return kept.reduce((sum, { diskSizeMb }) => sum + diskSizeMb * 1024 ** 2, 0)
  }
  const building = new Set<Cell>()
  const buildTemplate = createBuildTemplate({
    cells,
    takeCell: pools.take,
    buildingCells: building,
    assignIdentity,
    runStartCommand,
    prepare,
    commands: envdCommands,
    dropBootPriority: host.cgroups.dropBootPriority,
    findTemplate: files.findReadable,
    templates: files.templates,
    layers: files.layers,
    syncDisk: ({ record }) => host.rootfs.sync(record.cellId),
    async extract({ record }, dir) {
      const image = common.diskImage(record.cellId, record.disk)
      using _room = disks.holdRoom(await disks.usedBytes(image), 'keeping this layer')
      return host.rootfs.extract(record.cellId, { image, idShift: runtime.idShift }, dir)
    },
    images: parts.images,
    findFiles: files.archives.find,
    ensurePrototype: prototypes.ensure,
    discardPrototypes: prototypes.discardAll,
    nowMs,
  })
  const builds = createBuilds({
    buildTemplate,
    templates: files.templates,
    async forget(templateId) {
      await pools.removeTemplate(templateId)
      await prototypes.discardAll(templateId)
    },
  })
  const stopReaping = repeat(reapIntervalMs, sandboxes.removeDead, (err) =>
    log.error({ err, event: 'node.reap' }, 'a dead sandbox could not be removed'),
  )
  const stopUnfreezing = repeat(unfreezeIntervalMs, sandboxes.retryThaws, (err) =>
    log.error({ err, event: 'node.unfreeze' }, 'sandboxes that stand still could not be tried'),
  )
  const packIdle = async () => {
    const paused = sandboxes.paused().map(({ cellId }) => common.memoryDir(cellId))
    const kept = (await snapshots.list()).map((one) => snapshots.place(one.snapshotId).memoryDir)
    await memory.packIdle([...paused, ...kept], packAfterMs)
  }
  const stopPacking = repeat(packIntervalMs, packIdle, (err) =>
    log.error({ err, event: 'node.pack' }, 'memory on disk could not be packed'),
  )
  const stopTrimmingPrototypes = repeat(prototypeIntervalMs, prototypes.trim, (err) =>
    log.error({ err, event: 'node.trim' }, 'a prototype that nobody needs could not be removed'),
  )
  const stopTrimming = repeat(trimIntervalMs, pools.trim, (err) =>
    log.error({ err, event: 'node.trim' }, 'a sandbox that nobody wants could not be removed'),
  )
  const idleThrottle = createIdleThrottle({
    running: sandboxes.running,
    cpuUsedNs: parts.cpuUsedNs,
    runtimes: host.runtimes,
    nowNs: process.hrtime.bigint,
  })
  const stopResting = repeat(
    restIntervalMs,
    async () => idleThrottle.check(),
    (err) =>
      log.error({ err, event: 'node.rest' }, 'sandboxes that do nothing could not be let rest'),
  )
  const onHangError = (err: unknown) =>
    log.error({ err, event: 'node.hang' }, 'a sandbox that may hang could not be looked at')
  const atWork = () => [...sandboxes.running(), ...building]
  const endHanging = ({ record }: Cell) => {
    log.warn(
      { ...namesOf(record), event: 'node.hang' },
      'a sandbox that lost a process for lack of memory hangs, and is ended',
    )
    killIfAlive(record.process)
  }
  const hangDetector = createHangDetector({
    running: atWork,
    oomKills: parts.oomKills,
    runtimes: host.runtimes,
    end: endHanging,
    onError: onHangError,
  })
  const answers = ({ slot }: Cell) => isUp(slot.sandboxAddress)
  /** Retries, because a sandbox that was just thawed after a copy may be slow. */
  const answersInTime = async (cell: Cell) =>
    (await answers(cell)) || (await answers(cell)) || (await answers(cell))
  const rousing = limitConcurrency(rousedAtOnce)
  const oomRecovery = createOomRecovery({
    running: atWork,
    oomKills: parts.oomKills,
    async freezeAndThaw({ record: { cellId, owner, ...record } }) {
      const ofCell = host.runtimes[record.runtime]
      if (!ofCell.noticesKillsLate) return
      await rousing(async () => {
        if (owner) return sandboxes.freezeAndThaw(owner.sandboxId)
        // Cells that build are never adopted or copied, so freeze and thaw them directly.
        await ofCell.freeze(cellId).finally(() => ofCell.thaw(cellId))
      })
    },
    answers,
    async killUnlessAnswers(cell) {
      const { owner } = cell.record
      if (owner) return sandboxes.killUnless(answersInTime, owner.sandboxId)
      const isWell = await answersInTime(cell)
      if (!isWell) endHanging(cell)
      return isWell
    },
    onError: onHangError,
  })
  const lookForTrouble = async () => {
    oomRecovery.check()
    hangDetector.check()
  }
  const stopHangs = repeat(hangIntervalMs, lookForTrouble, onHangError)
  return {
    sandboxes,
    pools,
    builds,
    isAsleep: idleThrottle.isAsleep,
    async close() {
      await builds.close()
      await Promise.all([
        stopReaping(),
        stopTrimming(),
        stopTrimmingPrototypes(),
        stopUnfreezing(),
        stopResting(),
        stopHangs(),
      ])
      // Not awaited: an interrupted compression loses nothing.
      void stopPacking()
      await pools.close()
      await sandboxes.settle()
    },
  }
}

function namesOf({ cellId, owner }: CellRecord) {
  return { cellId, sandboxId: owner?.sandboxId }
}

function prepare(cell: Cell): Promise<void> {
  const { record, slot } = cell
  return prepareEnvd(slot.sandboxAddress, record.initToken, { isAlive: () => lives(cell) })
}

function lives({ record }: Pick<Cell, 'record'>): boolean {
  return record.process !== undefined && isAlive(record.process)
}

function poolBytes({ ATOLL_POOL_MEMORY_MB: megabytes }: NodeConfig): number {
  return megabytes === undefined ? totalmem() / 10 : megabytes * 1024 * 1024
}
