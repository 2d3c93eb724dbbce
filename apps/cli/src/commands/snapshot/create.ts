import { SnapshotInfo } from '@atoll/contracts/snapshots'
import { openPlatform, printJson, printLine } from '../../context.ts'
import type { CliContext } from '../../context.ts'
import { CliCommand } from '../../declare/command.ts'

export function createCommand(context: CliContext): CliCommand {
  return new CliCommand('create')
    .description('create a snapshot of a running sandbox and print its ID')
    .argument('<sandbox>', 'sandbox ID; the sandbox keeps running')
    .option('-n, --name <name[:tag]>', 'name of the snapshot, with an optional tag')
    .json(SnapshotInfo, 'print the snapshot as JSON')
    .details(help)
    .action((id: string, options: CreateOptions) => create(context, id, options))
}

interface CreateOptions {
  readonly name?: string
  readonly json?: boolean
}

async function create(context: CliContext, id: string, { name, json }: CreateOptions) {
  const { platform } = await openPlatform(context)
  const snapshot = await platform.createSnapshot(id, name)
  if (json) return printJson(context.stdout, snapshot)
  printLine(context.stdout, snapshot.snapshotID)
  if (context.stdout.isTTY) {
    printLine(
      context.stderr,
      `Create a sandbox from it: atoll sandbox create ${snapshot.snapshotID}`,
    )
  }
}

const help = `
A snapshot holds the current memory, processes and files of the sandbox (with the \`runc\`
runtime: files only). New sandboxes start from this state. The snapshot stays when the
sandbox ends. Using a name and tag again moves them to the new snapshot.

Examples:
  atoll sandbox create $(atoll snapshot create <sandbox>)
  atoll snapshot create <sandbox> --name tools:v2
  atoll sandbox create tools:v2`
