import { CreatedTeamApiKey } from '@atoll/contracts/teams/api-keys'
import { openPlatform, printJson, printLine } from '../../context.ts'
import type { CliContext } from '../../context.ts'
import { CliCommand } from '../../declare/command.ts'

export function createCommand(context: CliContext): CliCommand {
  return new CliCommand('create')
    .description('create an API key and print it; it is shown only once')
    .argument('<name>', 'name of the key, to recognise it in lists')
    .json(CreatedTeamApiKey, 'print the key and its description as JSON')
    .action((name: string, options: { readonly json?: boolean }) => create(context, name, options))
}

async function create(context: CliContext, name: string, options: { readonly json?: boolean }) {
  const { platform } = await openPlatform(context)
  const created = await platform.createKey(name)
  if (options.json) return printJson(context.stdout, created)
  printLine(context.stdout, created.key)
  printLine(context.stderr, 'Store this key now: the server keeps only its hash.')
}
