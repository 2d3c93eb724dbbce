import { SnapshotInfo } from '@atoll/contracts/snapshots'
import { z } from 'zod'
import { openPlatform, printJson, printLine } from '../../context.ts'
import type { CliContext } from '../../context.ts'
import { CliCommand } from '../../declare/command.ts'
import { printTable } from '../../output/table.ts'

export function listCommand(context: CliContext): CliCommand {
  return new CliCommand('list')
    .alias('ls')
    .description('list your snapshots, newest first')
    .option('-s, --sandbox <id>', 'only snapshots of this sandbox')
    .option('-n, --name <name[:tag]>', 'only snapshots with this name')
    .option('-q, --quiet', 'print only IDs')
    .json(z.array(SnapshotInfo))
    .action((options: ListOptions) => list(context, options))
}

interface ListOptions {
  readonly sandbox?: string
  readonly name?: string
  readonly quiet?: boolean
  readonly json?: boolean
}

async function list(context: CliContext, { sandbox, name, quiet, json }: ListOptions) {
  const { stdout } = context
  const { platform } = await openPlatform(context)
  const pages = platform.listSnapshots({ sandboxId: sandbox, name })
  const snapshots = await Array.fromAsync(pages)
  if (json) return printJson(stdout, snapshots)
  if (quiet) {
    for (const { snapshotID } of snapshots) printLine(stdout, snapshotID)
    return
  }
  if (snapshots.length === 0) {
    return printLine(context.stderr, 'No snapshots. Create one: atoll snapshot create <sandbox>')
  }
  const rows = snapshots.map(({ snapshotID, names }) => [snapshotID, names.join(', ') || '-'])
  printTable(stdout, ['ID', 'NAME'], rows)
}
