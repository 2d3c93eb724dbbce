import { printLine } from '../context.ts'
import type { CliContext } from '../context.ts'
import { CliCommand } from '../declare/command.ts'
import { openProgress } from '../output/progress.ts'
import { onEndSignal } from '../signals.ts'

interface Options {
  readonly anyRunsc?: boolean
}

export function restoreCommand(context: CliContext): CliCommand {
  return new CliCommand('restore')
    .description('restore a backup into an empty data directory')
    .argument('<directory>', 'directory that `atoll backup` wrote')
    .option('--any-runsc', 'accept memory that the runsc of this machine cannot read')
    .details(help)
    .action((directory: string, options: Options) => restore(context, directory, options))
}

/** Imports the server lazily, so that other commands start fast. */
async function restore(context: CliContext, directory: string, { anyRunsc = false }: Options) {
  const { stdout } = context
  const { loadServerConfig } = await import('@atoll/server/config')
  const { restoreBackup } = await import('@atoll/server/backup/restore-backup')
  const config = loadServerConfig(context.config.environment)
  const progress = openProgress(context.stderr)
  const stop = new AbortController()
  using _signals = onEndSignal(context, (signal) =>
    stop.abort(new Error(`ended by ${signal}; nothing was restored`)),
  )
  const options = { anyRunsc, signal: stop.signal, progress: progress.report }
  const restored = restoreBackup(config, directory, options).finally(() => progress.clear())
  const { store, sandboxes, snapshots, templates, createdAt } = await restored
  printLine(stdout, `restored the backup of ${createdAt} to ${config.server.ATOLL_DATA_DIR}`)
  printLine(
    stdout,
    `paused sandboxes: ${sandboxes}, snapshots: ${snapshots}, built templates: ${templates}`,
  )
  if (store === 'postgres') {
    printLine(
      stdout,
      'The database is not in this backup. Restore the dump of the same time, and set ATOLL_DATABASE_URL before the start.',
    )
  }
  printLine(stdout, 'Start the server with `atoll up`. Never run it beside the original.')
}

const help = `
Restores to ATOLL_DATA_DIR, which must be empty, as root. Path, addresses and subnet may differ
from those of the original. Every file is checked before anything is written. Refused are a
damaged or incomplete backup, one of a newer format, one of another architecture, and memory of
another release of runsc.

Examples:
  ATOLL_DATA_DIR=/srv/atoll atoll restore /mnt/backups/2026-11-18
  ATOLL_DATA_DIR=/srv/atoll atoll up`
