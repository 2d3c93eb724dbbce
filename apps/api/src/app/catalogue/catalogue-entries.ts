import { randomUUID } from 'node:crypto'
import type { Clock } from '@atoll/kit/clock'
import { Fault } from '@atoll/kit/fault'
import { newTemplateId } from '@atoll/kit/id'
import type { CatalogueNode, CatalogueTemplate } from '../../domain/catalogue.ts'
import type { Resources, TemplateStore } from '../../domain/template.ts'

/** Templates of the node's catalogue, and their records in the store. */
export interface CatalogueEntries {
  /** Returns the templates by their ID on the node. Throws an `unavailable` fault when the node does not answer. */
  read(): Promise<ReadonlyMap<string, CatalogueTemplate>>
  resourcesOf(template: CatalogueTemplate): Resources
  /** Writes the record of a template whose files are on the node. */
  addInstalled(template: CatalogueTemplate): Promise<void>
}

export interface CatalogueEntryPorts {
  readonly node: Pick<CatalogueNode, 'list'>
  readonly templates: Pick<TemplateStore, 'ensure' | 'locate'>
  /** Resources of `base`: those of the catalogue have at least as much. */
  readonly base: Resources
  readonly clock: Clock
}

const nodeTimeoutMs = 10_000

export function createCatalogueEntries(ports: CatalogueEntryPorts): CatalogueEntries {
  const { node, templates, base, clock } = ports
  let known: Promise<Map<string, CatalogueTemplate>> | undefined

  /** Asks the node once: installs change only through this catalogue. */
  function read(): Promise<Map<string, CatalogueTemplate>> {
    known ??= readFromNode().catch((error: unknown) => {
      known = undefined
      throw unavailable(error)
    })
    return known
  }

  async function readFromNode(): Promise<Map<string, CatalogueTemplate>> {
    const entries = new Map<string, CatalogueTemplate>()
    for (const template of await node.list(AbortSignal.timeout(nodeTimeoutMs))) {
      const record = await templates.locate({ namespace: '', name: template.alias }, '')
      // Files without a record: another installation that shares the layers has built them.
      const isInstalled = template.isInstalled && record !== undefined
      entries.set(template.nodeTemplateId, { ...template, isInstalled })
      if (isInstalled) await writeRecord(template)
    }
    return entries
  }

  function resourcesOf({ leastMemoryMb }: CatalogueTemplate): Resources {
    return { ...base, memoryMb: Math.max(base.memoryMb, leastMemoryMb) }
  }

  async function writeRecord(template: CatalogueTemplate): Promise<void> {
    const { alias, nodeTemplateId } = template
    const ids = { id: newTemplateId(), buildId: randomUUID(), nodeTemplateId }
    const resources = resourcesOf(template)
    await templates.ensure({ ...ids, alias, public: true, resources }, clock.now())
  }

  return {
    read,
    resourcesOf,
    async addInstalled(template) {
      await writeRecord(template)
      const entries = await read()
      entries.set(template.nodeTemplateId, { ...template, isInstalled: true })
    },
  }
}

function unavailable(cause: unknown): Fault {
  return new Fault(
    'unavailable',
    'node_unavailable',
    'The node does not answer, so its catalogue of templates is not known; try again later',
    { cause },
  )
}
