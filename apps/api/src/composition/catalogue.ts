import { createCatalogue } from '../app/catalogue/catalogue.ts'
import type { Catalogue } from '../app/catalogue/catalogue.ts'
import { createCatalogueEntries } from '../app/catalogue/catalogue-entries.ts'
import { createFindOrInstall } from '../app/catalogue/find-or-install.ts'
import type { FindOrInstall } from '../app/catalogue/find-or-install.ts'
import { createFleetCatalogue } from '../app/catalogue/fleet-catalogue.ts'
import type { FleetCatalogue } from '../app/catalogue/fleet-catalogue.ts'
import { createInstalls } from '../app/catalogue/installs.ts'
import { baseResources } from '../config.ts'
import type { Core } from './core.ts'

export interface CatalogueParts {
  readonly catalogue: Catalogue
  readonly findOrInstall: FindOrInstall
  /** Which nodes have which template. */
  readonly nodes: Pick<FleetCatalogue, 'mayStartOn'>
  /** Stops waiting for installs on the node. */
  close(): Promise<void>
}

export function startCatalogue(core: Core): CatalogueParts {
  const { config, stores, fleet, placing, clock, log } = core
  const { templates } = stores
  const nodes = createFleetCatalogue(fleet, placing)
  const entries = createCatalogueEntries({ nodes, templates, base: baseResources(config), clock })
  const installs = createInstalls({ node: nodes, entries, log })
  const isOnDemand = config.ATOLL_INSTALL_TEMPLATES === 'on-demand'
  const catalogue = createCatalogue({ entries, nodes, installs, isOnDemand })
  const findOrInstall = createFindOrInstall({ templates, catalogue })
  return { catalogue, findOrInstall, nodes, close: () => installs.close() }
}
