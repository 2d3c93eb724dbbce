import type { Logger } from '@atoll/kit/log'
import { repeat } from '@atoll/kit/repeat'
import type { Quarantined } from '../domain/sandboxes/quarantine.ts'
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

/** Starts to remove layers and archives that nothing uses. Returns a function that stops it. */
export function startSweeping(host: Host, files: TemplateFiles, log: Logger): () => Promise<void> {
  return repeat(
    sweepIntervalMs,
    () => sweepFiles(host, files),
    (err) =>
      log.error(
        { err, event: 'node.sweep' },
        'unused layers could not be removed; the next pass tries again',
      ),
  )
}

/** Cells that are being made count as users: their record exists before they need the layer. */
async function sweepFiles(host: Host, files: TemplateFiles): Promise<void> {
  // An unreadable record may need any layer.
  if ((await listQuarantined(host, files)).length > 0) return
  const records = (await host.records.list()).flatMap(({ record }) => record ?? [])
  const kept = [...records, ...(await host.snapshots.list())]
  await files.sweep(kept.map(({ layer }) => layer))
}
