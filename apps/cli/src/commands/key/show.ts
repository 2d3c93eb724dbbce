import { requireCredentials } from '../../access.ts'
import { printLine } from '../../context.ts'
import type { CliContext } from '../../context.ts'
import { CliCommand } from '../../declare/command.ts'

export function showCommand(context: CliContext): CliCommand {
  return new CliCommand('show')
    .description('print the API key of the local server')
    .details('\nExample:\n  export E2B_API_KEY=$(atoll key show)')
    .action(() => show(context))
}

async function show(context: CliContext) {
  const credentials = await requireCredentials(context.config.dataDir)
  printLine(context.stdout, credentials.apiKey)
}
