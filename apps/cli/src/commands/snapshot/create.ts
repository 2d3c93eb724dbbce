import { Command } from 'commander'
import { openPlatform, printJson, printLine } from '../../context.ts'
import type { CliContext } from '../../context.ts'

export function createCommand(context: CliContext): Command {
  return new Command('create')
    .description('keep a copy of a running sandbox and print the id of the copy')
    .argument('<sandbox>', 'the sandbox to copy; it goes on')
    .option('-n, --name <name[:tag]>', 'a name for the copy, and a tag under that name')
    .option('--json', 'print all that the server tells')
    .addHelpText('after', help)
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
    printLine(context.stderr, `Make a sandbox of it: atoll sandbox create ${snapshot.snapshotID}`)
  }
}

const help = `
The copy has the memory, processes and files that the sandbox has at this moment, and a
new sandbox goes on from there; under the \`runc\` runtime it has the files alone. It stays
when the sandbox is gone. A name that is used again, with the same tag, means the newer copy.

Examples:
  atoll sandbox create $(atoll snapshot create <sandbox>)
  atoll snapshot create <sandbox> --name tools:v2
  atoll sandbox create tools:v2`
