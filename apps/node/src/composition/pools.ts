import type { Logger } from '@atoll/kit/log'
import type { Cells } from '../app/lifecycle/cells.ts'
import type { Copies } from '../app/lifecycle/copies.ts'
import { createPrototypes } from '../app/pools/prototypes.ts'
import type { Prototypes } from '../app/pools/prototypes.ts'
import { createWarmPools } from '../app/pools/warm-pools.ts'
import type { BlankCells } from '../app/pools/blank-cells.ts'
import type { WarmPools } from '../app/pools/warm-pools.ts'
import type { NodeConfig } from '../config.ts'
import type { Cell, Shape } from '../domain/sandboxes/cell.ts'
import { freeMemoryBytes } from '../linux/machine.ts'
import { poolBytes } from './blank-cells.ts'
import { isCellAlive } from './cell-ports.ts'
import type { CellAccess, EnvdAccess } from './cell-ports.ts'
import type { EnvdFiles } from './envd-files.ts'
import type { Host } from './host.ts'
import type { TemplateFiles } from './template-files.ts'

interface PoolParts {
  readonly config: NodeConfig
  readonly host: Host
  readonly files: TemplateFiles
  readonly envd: EnvdFiles
  /** Shapes to keep pre-warmed before the first request for them. */
  readonly wanted: readonly Shape[]
  readonly log: Logger
}

interface PoolDependencies {
  readonly ports: CellAccess
  readonly envdPorts: EnvdAccess
  readonly cells: Cells
}

const nowMs = () => performance.now()

export async function openPrototypes(
  { host, files, envd }: PoolParts,
  { ports, envdPorts, cells, copies }: PoolDependencies & { readonly copies: Copies },
): Promise<Prototypes> {
  const { prepare, runStartCommand } = envdPorts
  const prototypes = createPrototypes({
    cells,
    store: host.prototypes,
    memoryFormat: await ports.runtime.memoryFormat(),
    findTemplate: files.find,
    isBuiltIn: (templateId) =>
      templateId === 'base' || files.catalogue.find(templateId) !== undefined,
    envdDir: envd.currentDir,
    runStartCommand,
    nowMs,
    async save(cell, snapshotId, store) {
      await prepare(cell)
      return copies.snapshot(cell, { snapshotId, isDurable: true }, store)
    },
  })
  await prototypes.open()
  return prototypes
}

export function openWarmPools(
  { config, host, files, wanted, log }: PoolParts,
  {
    ports,
    envdPorts,
    ...rest
  }: PoolDependencies & {
    readonly prototypes: Prototypes
    readonly adopted: readonly Cell[]
    readonly blanks: BlankCells | undefined
  },
): WarmPools {
  return createWarmPools({
    ...rest,
    budgetBytes: poolBytes(config),
    floors: wanted.map((shape) => ({ shape, count: config.ATOLL_READY_SANDBOXES })),
    ports: {
      ...ports,
      ...envdPorts,
      findTemplate: files.findReadable,
      snapshotBytes: host.snapshots.sizeBytes,
      forgetConnections: host.firewall.forgetConnections,
      freeze: host.cgroups.freeze,
      async thaw(cellId) {
        // Throw here: a frozen process counts as alive, so no other check would notice.
        if (!(await host.cgroups.thaw(cellId))) {
          throw new Error(`cell ${cellId} cannot be thawed: its control group stays frozen`)
        }
      },
      isAlive: isCellAlive,
      freeMemoryBytes,
      nowMs,
      onError: (err) =>
        log.error(
          { err, event: 'node.supply' },
          'a cell of a warm pool could not be made or removed; the pool is retried in a few seconds',
        ),
    },
  })
}
