import { Fault } from '@atoll/kit/fault'
import type { CatalogueTemplate } from '../../domain/catalogue/catalogue.ts'
import type { Shape } from '../../domain/sandboxes/cell.ts'
import type { TemplateFiles } from '../lifecycle/cells.ts'

export type OnInstallProgress = (label: string, fraction: number) => void

/** Installs templates of the catalogue. Requests for the same template share one install. */
export interface Installs {
  list(): ReadonlyArray<{ readonly template: CatalogueTemplate; readonly isInstalled: boolean }>
  /**
   * Returns once sandboxes can be created from the template. Continues when the caller stops waiting; only `close`
   * cancels it.
   */
  install(shape: Shape, onProgress: OnInstallProgress): Promise<void>
  close(): Promise<void>
}

interface Underway {
  readonly listeners: Set<OnInstallProgress>
  readonly done: Promise<void>
}

/** Share of the progress bar for the files; the rest is for the prototype. */
const filesShare = 0.9

interface InstallPorts {
  readonly catalogue: readonly CatalogueTemplate[]
  find(templateId: string): TemplateFiles | undefined
  /** Builds the files if they are missing. */
  prepare(
    templateId: string,
    onProgress: OnInstallProgress,
    signal: AbortSignal,
  ): Promise<TemplateFiles>
  ensurePrototype(
    shape: Shape,
    options: { readonly files: TemplateFiles; readonly signal: AbortSignal },
  ): Promise<boolean>
}

export function createInstalls(ports: InstallPorts): Installs {
  const underway = new Map<string, Underway>()
  const closing = new AbortController()

  function begin(shape: Shape): Underway {
    const listeners = new Set<OnInstallProgress>()
    const report: OnInstallProgress = (label, fraction) => {
      for (const listener of listeners) listener(label, fraction)
    }
    const done = run(ports, { shape, report, signal: closing.signal }).finally(() =>
      underway.delete(shape.templateId),
    )
    const install = { listeners, done }
    underway.set(shape.templateId, install)
    return install
  }

  return {
    list: () =>
      ports.catalogue.map((template) => ({
        template,
        isInstalled: ports.find(template.templateId) !== undefined,
      })),

    async install(shape, onProgress) {
      const { templateId } = shape
      if (!ports.catalogue.some((one) => one.templateId === templateId)) {
        throw new Fault('not_found', 'not_in_catalogue', `The catalogue has no ${templateId}`)
      }
      closing.signal.throwIfAborted()
      const { listeners, done } = underway.get(templateId) ?? begin(shape)
      listeners.add(onProgress)
      await done.finally(() => listeners.delete(onProgress))
    },

    async close() {
      closing.abort()
      await Promise.allSettled([...underway.values()].map(({ done }) => done))
    },
  }
}

async function run(
  ports: InstallPorts,
  work: {
    readonly shape: Shape
    readonly report: OnInstallProgress
    readonly signal: AbortSignal
  },
): Promise<void> {
  const { shape, report, signal } = work
  const onFiles: OnInstallProgress = (label, fraction) => report(label, fraction * filesShare)
  const files = await ports.prepare(shape.templateId, onFiles, signal)
  report('starting its programs', filesShare)
  await ports.ensurePrototype(shape, { files, signal }).catch((error: unknown) => {
    // Sandboxes whose memory cannot be saved boot instead.
    if (!(error instanceof Fault) || error.kind !== 'invalid') throw error
  })
  report('done', 1)
}
