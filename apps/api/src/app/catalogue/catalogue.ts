import { Fault } from '@atoll/kit/fault'
import type { CatalogueTemplate, InstallProgress } from '../../domain/catalogue.ts'
import type { CatalogueEntries } from './catalogue-entries.ts'
import type { FleetCatalogue } from './fleet-catalogue.ts'
import type { Install, Installs } from './installs.ts'

/** Built-in templates, installed on demand for all teams. */
export interface Catalogue {
  list(): Promise<CatalogueView[]>
  /** Finds a template by either of its names. */
  find(name: string): Promise<CatalogueTemplate | undefined>
  /** Finds the template with these files on the node. */
  findById(nodeTemplateId: string): Promise<CatalogueTemplate | undefined>
  /** Starts an install, unless it runs or the template is installed. Returns at once. */
  install(template: CatalogueTemplate, by: 'operator' | 'team'): CatalogueView
  /**
   * Waits until the template is installed, at most for `limitMs`. Starts the install if teams may. The install continues
   * when the wait ends.
   */
  provide(template: CatalogueTemplate, signal: AbortSignal, limitMs?: number): Promise<void>
  /** Whether a node that takes new sandboxes has the template. */
  isOnSomeNode(template: CatalogueTemplate): boolean
  /** Installs the template on the nodes that lack it, if teams may start an install. Returns at once. */
  installOnOthers(template: CatalogueTemplate): void
}

export interface CatalogueView extends CatalogueTemplate {
  readonly progress: InstallProgress | undefined
  readonly failure: Fault | undefined
}

export function createCatalogue(ports: {
  readonly entries: CatalogueEntries
  readonly nodes: Pick<FleetCatalogue, 'isOnSomeNode'>
  readonly installs: Installs
  /** Whether creates and teams may start an install. */
  readonly isOnDemand: boolean
}): Catalogue {
  const { entries, nodes, installs, isOnDemand } = ports

  function view(template: CatalogueTemplate): CatalogueView {
    const progress = installs.find(template)?.progress
    return { ...template, progress, failure: installs.failureOf(template) }
  }

  return {
    list: async () => [...(await entries.read()).values()].map(view),
    async find(name) {
      const templates = [...(await entries.read()).values()]
      return templates.find((template) => template.name === name || template.alias === name)
    },
    findById: async (id) => (await entries.read()).get(id),
    install(template, by) {
      if (template.isInstalled || installs.find(template)) return view(template)
      if (by === 'team' && !isOnDemand) throw onlyByOperator(template)
      installs.begin(template)
      return view(template)
    },
    async provide(template, signal, limitMs) {
      if (template.isInstalled) return
      if (!isOnDemand && !installs.find(template)) throw onlyByOperator(template)
      const install = installs.begin(template)
      const waits = [install.done, untilAborted(signal, clientLeft)]
      if (limitMs !== undefined) {
        waits.push(
          untilAborted(AbortSignal.timeout(limitMs), () => stillInstalling(template, install)),
        )
      }
      await Promise.race(waits)
    },
    isOnSomeNode: ({ nodeTemplateId }) => nodes.isOnSomeNode(nodeTemplateId),
    installOnOthers(template) {
      if (isOnDemand) installs.beginInBackground(template)
    },
  }
}

function untilAborted(signal: AbortSignal, reason: () => Fault): Promise<never> {
  const { promise, reject } = Promise.withResolvers<never>()
  const stop = () => reject(reason())
  if (signal.aborted) stop()
  else signal.addEventListener('abort', stop, { once: true })
  return promise
}

function clientLeft(): Fault {
  return new Fault(
    'unavailable',
    'install_not_awaited',
    'The client left before the template was installed; the install continues',
  )
}

function stillInstalling({ alias, name }: CatalogueTemplate, { progress }: Install): Fault {
  const percent = Math.floor(progress.fraction * 100)
  return new Fault(
    'unavailable',
    'template_installing',
    `Template ${alias} is still being installed (${percent} %), and the install continues. Create the sandbox again in some minutes; atoll template install ${name} waits for the install`,
  )
}

function onlyByOperator({ alias, name }: CatalogueTemplate): Fault {
  return new Fault(
    'conflict',
    'template_not_installed',
    `Template ${alias} is not installed, and only operators may install templates here. An operator runs: atoll template install ${name}`,
  )
}
