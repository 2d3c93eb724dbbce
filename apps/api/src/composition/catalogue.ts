import { createCatalogue } from '../app/catalogue/catalogue.ts'
import type { Catalogue } from '../app/catalogue/catalogue.ts'
import { createCatalogueEntries } from '../app/catalogue/catalogue-entries.ts'
import { createFindOrInstall } from '../app/catalogue/find-or-install.ts'
import type { FindOrInstall } from '../app/catalogue/find-or-install.ts'
import { createFleetCatalogue } from '../app/catalogue/fleet-catalogue.ts'
import { createInstalls } from '../app/catalogue/installs.ts'
import { baseResources } from '../config.ts'
import type { Core } from './core.ts'

export interface CatalogueParts {
  readonly catalogue: Catalogue
  readonly findOrInstall: FindOrInstall
  /** Stops waiting for installs on the node. */
  close(): Promise<void>
}

export function startCatalogue({ config, stores, fleet, clock, log }: Core): CatalogueParts {
  const { templates } = stores
  const nodes = createFleetCatalogue(fleet)
  const entries = createCatalogueEntries({ nodes, templates, base: baseResources(config), clock })
  const installs = createInstalls({ node: nodes, entries, log })
  const isOnDemand = config.ATOLL_INSTALL_TEMPLATES === 'on-demand'
  const catalogue = createCatalogue({ entries, installs, isOnDemand })
  const findOrInstall = createFindOrInstall({ templates, catalogue })
  return { catalogue, findOrInstall, close: () => installs.close() }
}
