import type { Logger } from '@atoll/kit/log'
import { limitConcurrency } from '@atoll/kit/limit-concurrency'
import { repeat } from '@atoll/kit/repeat'
import type { Quarantined } from '../domain/sandboxes/quarantine.ts'
import { isEvicted } from '../domain/sandboxes/sandbox.ts'
import type { Host } from './host.ts'
import type { TemplateFiles } from './template-files.ts'

const sweepIntervalMs = 600_000

/** Lists all records on this node that cannot be read. */
export async function listQuarantined(host: Host, files: TemplateFiles): Promise<Quarantined[]> {
  return [
    ...(await host.records.list()).flatMap((entry) => entry.quarantined ?? []),
    ...(await host.snapshots.listQuarantined()),
    ...files.templates.listQuarantined(),
    ...files.layers.listQuarantined(),
  ]
}

export function logQuarantined(quarantined: readonly Quarantined[], log: Logger): void {
  for (const { kind, path, reason } of quarantined) {
    log.error(
      { event: 'node.quarantine', kind, path, reason },
      'a record cannot be read; its files are kept and not used, see atoll doctor',
    )
  }
}

export interface Sweeping {
  /** Waits for the current pass, and lets no other begin until the result is disposed. */
  hold(): Promise<Disposable>
  /** Runs `task` while no pass runs and none is held back. */
  run<T>(task: () => Promise<T>, signal: AbortSignal): Promise<T>
  stop(): Promise<void>
}

/** Starts to remove layers and archives that nothing uses. */
export function startSweeping(host: Host, files: TemplateFiles, log: Logger): Sweeping {
  const turn = limitConcurrency(1)
  const stop = repeat(
    sweepIntervalMs,
    () => turn(() => sweepFiles(host, files)),
    (err) =>
      log.error(
        { err, event: 'node.sweep' },
        'unused layers could not be removed; the next pass tries again',
      ),
  )
  return {
    async hold() {
      const held = Promise.withResolvers<void>()
      const released = Promise.withResolvers<void>()
      void turn(() => (held.resolve(), released.promise))
      await held.promise
      return { [Symbol.dispose]: () => released.resolve() }
    },
    run: turn,
    stop,
  }
}

/** Cells that are being made count as users: their record exists before they need the layer. */
async function sweepFiles(host: Host, files: TemplateFiles): Promise<void> {
  // An unreadable record may need any layer.
  if ((await listQuarantined(host, files)).length > 0) return
  const records = (await host.records.list())
    .flatMap(({ record }) => record ?? [])
    .filter((record) => !isEvicted(record)) // a fetch brings their layers
  const kept = [...records, ...(await host.snapshots.list())]
  await files.sweep(kept.map(({ layer }) => layer))
}
