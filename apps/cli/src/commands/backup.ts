import { formatSize } from '../output/table.ts'
import { printLine } from '../context.ts'
import type { CliContext } from '../context.ts'
import { CliCommand } from '../declare/command.ts'
import { openProgress } from '../output/progress.ts'
import { onEndSignal } from '../signals.ts'

export function backupCommand(context: CliContext): CliCommand {
  return new CliCommand('backup')
    .description('write a copy of the data of the server on this machine, also while it runs')
    .argument('<directory>', 'new directory for the backup, outside the data directory')
    .details(help)
    .action((directory: string) => backup(context, directory))
}

/** Imports the server lazily, so that other commands start fast. */
async function backup(context: CliContext, directory: string) {
  const { stdout } = context
  const { loadServerConfig } = await import('@atoll/server/config')
  const { takeBackup } = await import('@atoll/server/backup/take-backup')
  const config = loadServerConfig(context.config.environment)
  const progress = openProgress(context.stderr)
  const stop = new AbortController()
  using _signals = onEndSignal(context, (signal) =>
    stop.abort(new Error(`ended by ${signal}; nothing was kept`)),
  )
  const options = { signal: stop.signal, progress: progress.report }
  const taken = await takeBackup(config, directory, options).finally(() => progress.clear())
  const { manifest, captured, path } = taken
  const bytes = manifest.archives.reduce((sum, archive) => sum + archive.bytes, 0)
  printLine(stdout, `backup written to ${path}: ${formatSize(bytes)}`)
  printLine(
    stdout,
    `paused sandboxes: ${manifest.sandboxes}, snapshots: ${manifest.snapshots}, built templates: ${manifest.templates}`,
  )
  for (const { name, isCopied } of captured.unknown) {
    printLine(stdout, `unknown to this release, ${isCopied ? 'copied' : 'not copied'}: ${name}`)
  }
  for (const lost of captured.damaged) printLine(stdout, `damaged, not copied: ${lost}`)
  if (manifest.store === 'sqlite') return
  printLine(
    stdout,
    'The database is NOT in this backup. Dump it now with pg_dump, and keep both together: they must be of the same time.',
  )
}

const help = `
Copies the store, credentials, certificates, templates with their layers, snapshots and paused
sandboxes with their memory. Running sandboxes are not in a backup: pause or snapshot them
before. With PostgreSQL everything but the database is copied: dump it with pg_dump.

Runs as root, with the settings of the server (ATOLL_DATA_DIR, ATOLL_LAYERS_DIR,
ATOLL_DATABASE_URL). Works with and without a running server. The directory appears when the
backup is complete. It holds keys and secrets: keep it as safe as the machine.

Examples:
  atoll backup /mnt/backups/$(date +%F)
  atoll restore /mnt/backups/2026-11-18`
