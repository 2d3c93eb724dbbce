import type { Builds } from '../app/builds/builds.ts'
import type { Installs } from '../app/catalogue/installs.ts'
import type { SandboxEvents } from '../app/lifecycle/events.ts'
import type { Reclaimed } from '../app/lifecycle/reclaim.ts'
import { createSandboxes } from '../app/lifecycle/sandboxes.ts'
import type { SandboxPorts, Sandboxes } from '../app/lifecycle/sandboxes.ts'
import { launchStartCommand } from '../app/lifecycle/start-command.ts'
import type { WarmPools } from '../app/pools/warm-pools.ts'
import type { Images } from '../domain/builds/image.ts'
import type { Cell, Shape } from '../domain/sandboxes/cell.ts'
import type { Runtime } from '../domain/sandboxes/runtime.ts'
import { isEvicted } from '../domain/sandboxes/sandbox.ts'
import { envdCommands } from '../envd/commands.ts'
import { folderBytes } from '../linux/disks/disk-images.ts'
import { createMemoryFolders } from '../linux/files/memory-folders.ts'
import { killIfAlive } from '../linux/processes/process.ts'
import { openBlankCells } from './blank-cells.ts'
import { openBuilds } from './builds.ts'
import { createCellPorts, createEnvdPorts, idsOf } from './cell-ports.ts'
import type { CellAccess, EnvdAccess } from './cell-ports.ts'
import { openInstalls } from './installs.ts'
import { openCells, openCopies, openEnvdMounts, openFreezes } from './cells.ts'
import type { CellParts } from './cells.ts'
import { startHealthChecks } from './health-checks.ts'
import { startMaintenance } from './maintenance.ts'
import { openPrototypes, openWarmPools } from './pools.ts'

export interface SandboxParts extends CellParts {
  readonly runtime: Runtime
  readonly images: Images
  readonly events: SandboxEvents
  readonly adopted: Reclaimed
  /** Shapes to keep pre-warmed before the first request for them. */
  readonly wanted: readonly Shape[]
  memoryBytes(cellId: string): Promise<number>
  cpuUsedNs(cellId: string): bigint | undefined
  oomKills(cellId: string): number
}

export interface RunningSandboxes {
  readonly sandboxes: Sandboxes
  readonly pools: WarmPools
  readonly builds: Builds
  readonly installs: Installs
  isAsleep(cellId: string): boolean
  close(): Promise<void>
}

/** Limit for launching the start command, which is not waited for. */
const launchLimitMs = 10_000

/** Wires up everything that makes, keeps and ends sandboxes, and starts the background loops. */
export async function openSandboxes(parts: SandboxParts): Promise<RunningSandboxes> {
  const { host, runtime, slots, events, adopted } = parts
  const memory = createMemoryFolders(() => performance.now())
  const ports = createCellPorts({ ...parts, committedBytes: () => committedBytes(sandboxes) })
  const envdPorts = createEnvdPorts(host, runtime)
  const findEnvd = openEnvdMounts(parts)
  const blanks = await openBlankCells(parts, ports, findEnvd)
  const cells = openCells(parts, ports, { memory, blanks, findEnvd })
  const freezes = openFreezes(parts, adopted.stuck)
  const copies = openCopies(host, ports, freezes)
  const common = { ports, envdPorts, cells }
  const prototypes = await openPrototypes(parts, { ...common, copies })
  const pools = openWarmPools(parts, { ...common, prototypes, blanks, adopted: adopted.ready })
  const sandboxes = createSandboxes({
    cells,
    copies,
    freezes,
    pools,
    slots,
    events,
    adopted,
    ports: sandboxPorts(parts, ports, envdPorts),
  })
  const { builds, buildingCells } = openBuilds({ ...parts, ...common, pools, prototypes })
  const installs = openInstalls(parts.files.catalogue, prototypes)
  const maintenance = startMaintenance({ ...parts, sandboxes, pools, blanks, prototypes, memory })
  const health = startHealthChecks({ ...parts, sandboxes, pools, buildingCells })
  return {
    sandboxes,
    pools,
    builds,
    installs,
    isAsleep: health.isAsleep,
    async close() {
      await Promise.all([builds.close(), installs.close()])
      await Promise.all([maintenance.close(), health.close()])
      await pools.close()
      await sandboxes.settle()
      await blanks?.close()
    },
  }
}

function sandboxPorts(
  { host, oomKills, log }: SandboxParts,
  ports: CellAccess,
  { identityPorts }: EnvdAccess,
): SandboxPorts {
  return {
    ...ports,
    ...identityPorts,
    snapshots: host.snapshots,
    oomKills,
    keptBytes: async ({ cellId, disk }) =>
      (await ports.disks.usedBytes(ports.diskImage(cellId, disk))) +
      (await folderBytes(ports.memoryDir(cellId))),
    onReleaseError: (err) =>
      log.error(
        { err, event: 'node.release-failed' },
        'the processes or mounts of a paused sandbox could not be removed; the next start of the node removes them',
      ),
    onRemovalError: (err) =>
      log.error(
        { err, event: 'node.removal-failed' },
        'files of a resumed sandbox from before its resume could not be removed; the next start of the node removes them',
      ),
    endProcess: (record) => killIfAlive(record.process),
    async launchStartCommand({ record, slot }: Cell, accessToken) {
      const endpoint = { address: slot.sandboxAddress, accessToken }
      const limit = AbortSignal.timeout(launchLimitMs)
      // The owner may have deleted the program. The rest of the sandbox still works, so only log the error.
      await launchStartCommand(envdCommands, endpoint, record.setup, limit).catch((err: unknown) =>
        log.info(
          { err, event: 'node.start-program', ...idsOf(record) },
          'the start command of a resumed sandbox could not be launched',
        ),
      )
    },
  }
}

/** Returns the bytes of all disks of running and paused sandboxes. */
function committedBytes(sandboxes: Sandboxes): number {
  const paused = sandboxes.paused().filter((one) => !isEvicted(one))
  const kept = [...sandboxes.running().map(({ record }) => record), ...paused]
  return kept.reduce((sum, { diskSizeMb }) => sum + diskSizeMb * 1024 ** 2, 0)
}
