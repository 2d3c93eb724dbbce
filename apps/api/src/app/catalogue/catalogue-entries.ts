import { randomUUID } from 'node:crypto'
import { captureContext } from '@atoll/kit/async-context'
import type { Clock } from '@atoll/kit/clock'
import { Fault } from '@atoll/kit/fault'
import { newTemplateId } from '@atoll/kit/id'
import type { CatalogueTemplate } from '../../domain/catalogue.ts'
import type { Resources, TemplateStore } from '../../domain/template.ts'
import type { FleetCatalogue } from './fleet-catalogue.ts'

/** Templates of the catalogue of the nodes, and their records in the store. */
export interface CatalogueEntries {
  /** Returns the templates by their ID on the nodes. Throws an `unavailable` fault when no node has ever answered. */
  read(): Promise<ReadonlyMap<string, CatalogueTemplate>>
  resourcesOf(template: CatalogueTemplate): Resources
  /** Writes the record of a template whose files are on the node. */
  addInstalled(template: CatalogueTemplate): Promise<void>
}

export interface CatalogueEntryPorts {
  readonly nodes: Pick<FleetCatalogue, 'list' | 'isOfAllNodes'>
  readonly templates: Pick<TemplateStore, 'ensure' | 'locate'>
  /** Resources of `base`: those of the catalogue have at least as much. */
  readonly base: Resources
  readonly clock: Clock
}

/** Nodes that did not answer, or that have started again since, are asked after that time. */
const freshMs = 2_000

type Entries = Map<string, CatalogueTemplate>

export function createCatalogueEntries(ports: CatalogueEntryPorts): CatalogueEntries {
  const { nodes } = ports
  const records = createRecords(ports)
  let known: Entries | undefined
  let readAtMs = -Infinity
  let reading: Promise<Entries> | undefined
  // A request that begins a reading may not wait for it. So the reading must not count as part of it in traces.
  const outsideRequests = captureContext()

  /** Requests wait only for nodes that are new; others are asked again meanwhile. */
  async function read(): Promise<Entries> {
    const isOfAllNodes = nodes.isOfAllNodes()
    if (known && isOfAllNodes && performance.now() - readAtMs < freshMs) return known
    const next = readAgain()
    return known && isOfAllNodes ? known : next
  }

  function readAgain(): Promise<Entries> {
    reading ??= outsideRequests(readFromNodes)
      .catch((error: unknown) => {
        if (known) return known
        throw unavailable(error)
      })
      .finally(() => (reading = undefined))
    return reading
  }

  async function readFromNodes(): Promise<Entries> {
    readAtMs = performance.now()
    const entries: Entries = new Map()
    for (const template of await nodes.list()) {
      const { nodeTemplateId } = template
      const wasInstalled = known?.get(nodeTemplateId)?.isInstalled === true
      // Files without a record: another installation that shares the layers has built them.
      const isInstalled = template.isInstalled && (wasInstalled || (await records.has(template)))
      entries.set(nodeTemplateId, { ...template, isInstalled })
      if (isInstalled && !wasInstalled) await records.write(template)
    }
    known = entries
    return entries
  }

  return {
    read,
    resourcesOf: records.resourcesOf,
    async addInstalled(template) {
      await records.write(template)
      // A reading in progress may have begun before the install.
      await reading?.catch(() => {})
      await readAgain()
    },
  }
}

/** Records of the templates of the catalogue in the store. */
function createRecords({ templates, base, clock }: CatalogueEntryPorts) {
  const resourcesOf = ({ leastMemoryMb }: CatalogueTemplate): Resources => ({
    ...base,
    memoryMb: Math.max(base.memoryMb, leastMemoryMb),
  })
  return {
    resourcesOf,
    has: async ({ alias }: CatalogueTemplate) =>
      (await templates.locate({ namespace: '', name: alias }, '')) !== undefined,
    async write(template: CatalogueTemplate): Promise<void> {
      const { alias, nodeTemplateId } = template
      const ids = { id: newTemplateId(), buildId: randomUUID(), nodeTemplateId }
      const resources = resourcesOf(template)
      await templates.ensure({ ...ids, alias, public: true, resources }, clock.now())
    },
  }
}

function unavailable(cause: unknown): Fault {
  return new Fault(
    'unavailable',
    'node_unavailable',
    'No node answers, so the catalogue of templates is not known; try again later',
    { cause },
  )
}
