import { Fault } from '@atoll/kit/fault'
import type { Logger } from '@atoll/kit/log'
import type { CatalogueNode, CatalogueTemplate, InstallProgress } from '../../domain/catalogue.ts'
import type { CatalogueEntries } from './catalogue-entries.ts'

/** Runs installs, at most one per template at a time. An install continues when the requests that wait for it end. */
export interface Installs {
  /** Starts an install, or returns the install in progress. */
  begin(template: CatalogueTemplate): Install
  find(template: CatalogueTemplate): Install | undefined
  /** Returns why the last install failed; undefined if it succeeded or an install is in progress. */
  failureOf(template: CatalogueTemplate): Fault | undefined
  /** Starts an install for which no request waits, unless one is in progress or has failed lately. */
  beginInBackground(template: CatalogueTemplate): void
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

/** Time from a failed install until a create may start the next one in the background. */
const retryMs = 10 * 60_000

/** Number of log entries about the progress of one install. */
const progressSteps = 10

export function createInstalls(ports: InstallPorts): Installs {
  const { log } = ports
  const closing = new AbortController()
  const inProgress = new Map<string, Install>()
  const failures = new Map<string, { readonly fault: Fault; readonly atMs: number }>()

  function begin(template: CatalogueTemplate): Install {
    const { nodeTemplateId: id, alias } = template
    if (closing.signal.aborted) throw stoppingFault()
    failures.delete(id)
    const { promise: done, resolve, reject } = Promise.withResolvers<void>()
    done.catch(() => {}) // The failure is logged; perhaps no request waits for `done`.
    const install = { progress: { label: 'waiting', fraction: 0 }, done }
    inProgress.set(id, install)
    const report = (progress: InstallProgress) => void (install.progress = progress)
    void run(ports, { template, report, signal: closing.signal })
      .finally(() => inProgress.delete(id))
      .then(resolve, (error: unknown) => {
        const fault = closing.signal.aborted ? stoppingFault() : Fault.from(error)
        failures.set(id, { fault, atMs: performance.now() })
        log.error({ err: error, event: 'template.install-failed', template: alias })
        reject(fault)
      })
    return install
  }

  return {
    begin: (template) => inProgress.get(template.nodeTemplateId) ?? begin(template),
    find: ({ nodeTemplateId }) => inProgress.get(nodeTemplateId),
    failureOf: ({ nodeTemplateId }) => failures.get(nodeTemplateId)?.fault,
    beginInBackground(template) {
      const { nodeTemplateId: id } = template
      const failedMs = failures.get(id)?.atMs ?? -Infinity
      if (closing.signal.aborted || inProgress.has(id)) return
      if (performance.now() - failedMs >= retryMs) begin(template)
    },
    async close() {
      closing.abort()
      await Promise.allSettled([...inProgress.values()].map(({ done }) => done))
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
  let loggedStep = -1
  const request = { nodeTemplateId, resources: entries.resourcesOf(template) }
  for await (const progress of node.install(request, work.signal)) {
    work.report(progress)
    const step = Math.floor(progress.fraction * progressSteps)
    if (step === loggedStep) continue
    loggedStep = step
    const percent = Math.floor(progress.fraction * 100)
    log.info({ event: 'template.install', template: alias, percent, label: progress.label })
  }
  await entries.addInstalled(template)
  log.info({ event: 'template.installed', template: alias })
}

function stoppingFault(): Fault {
  return new Fault('unavailable', 'server_stopping', 'The server is stopping; try again')
}
