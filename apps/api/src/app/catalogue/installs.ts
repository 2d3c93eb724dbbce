import { Fault } from '@atoll/kit/fault'
import type { Logger } from '@atoll/kit/log'
import type { CatalogueNode, CatalogueTemplate, InstallProgress } from '../../domain/catalogue.ts'
import type { CatalogueEntries } from './catalogue-entries.ts'

/** Installs in progress, at most one per template. They do not depend on the requests that wait for them. */
export interface Installs {
  /** Starts an install, or joins the one in progress. */
  begin(template: CatalogueTemplate): Install
  find(template: CatalogueTemplate): Install | undefined
  /** Returns why the last install failed. Undefined while another one runs. */
  failureOf(template: CatalogueTemplate): Fault | undefined
  close(): Promise<void>
}

export interface Install {
  readonly progress: InstallProgress
  readonly done: Promise<void>
}

export interface InstallPorts {
  readonly node: Pick<CatalogueNode, 'install'>
  readonly entries: CatalogueEntries
  readonly log: Logger
}

/** Progress is logged each time another tenth is done. */
const loggedParts = 10

export function createInstalls(ports: InstallPorts): Installs {
  const { log } = ports
  const closing = new AbortController()
  const underway = new Map<string, Install>()
  const failures = new Map<string, Fault>()

  function begin(template: CatalogueTemplate): Install {
    const { nodeTemplateId: id, alias } = template
    if (closing.signal.aborted) throw stopping()
    failures.delete(id)
    const { promise: done, resolve, reject } = Promise.withResolvers<void>()
    done.catch(() => {}) // The failure is logged, and no request may be waiting for it.
    const install = { progress: { label: 'waiting', fraction: 0 }, done }
    underway.set(id, install)
    const report = (progress: InstallProgress) => void (install.progress = progress)
    void run(ports, { template, report, signal: closing.signal })
      .finally(() => underway.delete(id))
      .then(resolve, (error: unknown) => {
        const fault = closing.signal.aborted ? stopping() : Fault.from(error)
        failures.set(id, fault)
        log.error({ err: error, event: 'template.install-failed', template: alias })
        reject(fault)
      })
    return install
  }

  return {
    begin: (template) => underway.get(template.nodeTemplateId) ?? begin(template),
    find: ({ nodeTemplateId }) => underway.get(nodeTemplateId),
    failureOf: ({ nodeTemplateId }) => failures.get(nodeTemplateId),
    async close() {
      closing.abort()
      await Promise.allSettled([...underway.values()].map(({ done }) => done))
    },
  }
}

async function run(
  { node, entries, log }: InstallPorts,
  work: {
    readonly template: CatalogueTemplate
    report(progress: InstallProgress): void
    readonly signal: AbortSignal
  },
): Promise<void> {
  const { template } = work
  const { nodeTemplateId, alias } = template
  let logged = -1
  const order = { nodeTemplateId, resources: entries.resourcesOf(template) }
  for await (const progress of node.install(order, work.signal)) {
    work.report(progress)
    const part = Math.floor(progress.fraction * loggedParts)
    if (part === logged) continue
    logged = part
    const percent = Math.floor(progress.fraction * 100)
    log.info({ event: 'template.install', template: alias, percent, label: progress.label })
  }
  await entries.addInstalled(template)
  log.info({ event: 'template.installed', template: alias })
}

function stopping(): Fault {
  return new Fault('unavailable', 'server_stopping', 'The server is stopping; try again')
}
