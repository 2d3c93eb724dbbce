import { availableParallelism } from 'node:os'
import { createBuildTemplate } from '../app/builds/build-template.ts'
import { createBuilds } from '../app/builds/builds.ts'
import type { Builds } from '../app/builds/builds.ts'
import type { Cells } from '../app/lifecycle/cells.ts'
import type { Prototypes } from '../app/pools/prototypes.ts'
import type { WarmPools } from '../app/pools/warm-pools.ts'
import type { NodeConfig } from '../config.ts'
import type { Images } from '../domain/builds/image.ts'
import type { Cell } from '../domain/sandboxes/cell.ts'
import { envdCommands } from '../envd/commands.ts'
import type { CellAccess, EnvdAccess } from './cell-ports.ts'
import type { Host } from './host.ts'
import type { TemplateFiles } from './template-files.ts'

/** Builds wait for disk and network most of the time. */
const leastConcurrentBuilds = 4

/** Opens template builds. Also returns the cells in which build commands run. */
export function openBuilds(parts: {
  readonly config: NodeConfig
  readonly host: Host
  readonly files: TemplateFiles
  readonly images: Images
  readonly ports: CellAccess
  readonly envdPorts: EnvdAccess
  readonly cells: Cells
  readonly pools: WarmPools
  readonly prototypes: Prototypes
}): { readonly builds: Builds; readonly buildingCells: ReadonlySet<Cell> } {
  const { config, host, files, ports, pools, prototypes } = parts
  const { disks, runtime } = ports
  const buildingCells = new Set<Cell>()
  const buildTemplate = createBuildTemplate({
    ...parts.envdPorts,
    cells: parts.cells,
    records: ports.records,
    takeCell: pools.take,
    takeWithoutBoot: pools.takeWithoutBoot,
    thaw: pools.thaw,
    buildingCells,
    commands: envdCommands,
    dropBootPriority: ports.dropBootPriority,
    findTemplate: files.findReadable,
    templates: files.templates,
    layers: files.layers,
    syncDisk: ({ record }) => host.rootfs.sync(record.cellId),
    async extract({ record }, dir) {
      const image = ports.diskImage(record.cellId, record.disk)
      using _room = disks.reserveSpace(await disks.usedBytes(image), 'keeping this layer')
      return host.rootfs.extract(record.cellId, { image, idShift: runtime.idShift }, dir)
    },
    images: parts.images,
    findFiles: files.archives.find,
    ensurePrototype: prototypes.ensure,
    discardPrototypes: prototypes.discardAll,
    stepVariables: config.ATOLL_BUILD_ENV,
    readyLimitMs: config.ATOLL_BUILD_READY_SECONDS * 1000,
    nowMs: () => performance.now(),
  })
  const builds = createBuilds({
    buildTemplate,
    concurrentBuilds:
      config.ATOLL_CONCURRENT_BUILDS ?? Math.max(leastConcurrentBuilds, availableParallelism()),
    templates: files.templates,
    async removeCells(templateId) {
      await pools.removeTemplate(templateId)
      await prototypes.discardAll(templateId)
    },
  })
  return { builds, buildingCells }
}
