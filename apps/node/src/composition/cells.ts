import { rm } from 'node:fs/promises'
import type { Logger } from '@atoll/kit/log'
import { createCells } from '../app/lifecycle/cells.ts'
import type { Cells } from '../app/lifecycle/cells.ts'
import { createCopies } from '../app/lifecycle/copies.ts'
import type { Copies } from '../app/lifecycle/copies.ts'
import { createFreezes } from '../app/lifecycle/freezes.ts'
import type { Freezes } from '../app/lifecycle/freezes.ts'
import type { BlankCells } from '../app/pools/blank-cells.ts'
import type { SlotPool } from '../app/pools/slot-pool.ts'
import type { NodeConfig } from '../config.ts'
import { flushFolder } from '../linux/disks/disk-images.ts'
import type { MemoryFolders } from '../linux/files/memory-folders.ts'
import { createReadOnlyMounts } from '../linux/mounts/read-only-mounts.ts'
import { isStopped } from '../linux/processes/process.ts'
import { endHalfOpen } from '../net/half-open.ts'
import { idsOf } from './cell-ports.ts'
import type { CellAccess } from './cell-ports.ts'
import type { EnvdFiles } from './envd-files.ts'
import type { Host } from './host.ts'
import type { TemplateFiles } from './template-files.ts'
import { createTemplateRootfs, hasSudo } from './template-rootfs.ts'

export interface CellParts {
  readonly config: NodeConfig
  readonly host: Host
  readonly files: TemplateFiles
  readonly envd: EnvdFiles
  readonly slots: SlotPool
  readonly log: Logger
}

export function openCells(
  parts: CellParts,
  ports: CellAccess,
  { memory, blanks, findEnvd }: CellDependencies,
): Cells {
  const { config, host, files, envd, slots } = parts
  return createCells({
    slots,
    blanks,
    ports: {
      ...ports,
      mountRootfs: createTemplateRootfs({
        ...host,
        runtime: ports.runtime,
        ...files,
        nameservers: config.ATOLL_NAMESERVERS,
      }),
      useMemory: memory.use,
      findTemplate: files.findReadable,
      envdDir: envd.currentDir,
      hasSudo: (layer) => hasSudo(files.chain(layer)),
      findEnvd,
    },
  })
}

interface CellDependencies {
  readonly memory: MemoryFolders
  readonly blanks: BlankCells | undefined
  /** Returns the folder of any envd build by name. */
  readonly findEnvd: (name: string) => Promise<string>
}

export function openEnvdMounts({ host, envd }: CellParts): CellDependencies['findEnvd'] {
  return createReadOnlyMounts(host.namespace, envd.builtDir, envd.mountedDir)
}

/** `stuck`: cells that an earlier agent left frozen. */
export function openFreezes(
  { host, log }: Pick<CellParts, 'host' | 'log'>,
  stuck: readonly string[],
): Freezes {
  const freezes = createFreezes({
    records: host.records,
    // An earlier run of the node may have used the other runtime.
    wake: ({ runtime, process }) =>
      process && host.runtimes[runtime].setIdleLevel(process, 'awake'),
    freeze: (record) => host.runtimes[record.runtime].freeze(record.cellId),
    thaw: (record) => host.runtimes[record.runtime].thaw(record.cellId),
    isStopped: (record) => isStopped(record.process),
    nowMs: () => performance.now(),
    onStuck: ({ record }, { error, attempt, waitMs }) =>
      log.error(
        { err: error, event: 'node.unfreeze', ...idsOf(record), attempt, waitMs },
        'a sandbox is still frozen after a copy, because the runtime failed to thaw it; the thaw is retried',
      ),
    onThawed: ({ record }) =>
      log.info({ event: 'node.unfreeze', ...idsOf(record) }, 'a retry thawed a frozen sandbox'),
  })
  stuck.forEach(freezes.adopt)
  return freezes
}

export function openCopies(host: Host, ports: CellAccess, freezes: Freezes): Copies {
  return createCopies(
    {
      ...ports,
      syncDisk: host.rootfs.sync,
      flushFolder,
      removeFolder: (dir) => rm(dir, { recursive: true, force: true }),
      endHalfOpen: ({ sandboxAddress }) => endHalfOpen(sandboxAddress),
    },
    freezes,
  )
}
