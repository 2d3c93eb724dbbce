import { Command } from 'commander'
import { requireCredentials } from '../../access.ts'
import { printLine } from '../../context.ts'
import type { CliContext } from '../../context.ts'

export function showCommand(context: CliContext): Command {
  return new Command('show')
    .description('print the API key of the local server')
    .addHelpText('after', '\nExample:\n  export E2B_API_KEY=$(atoll key show)')
    .action(() => show(context))
}

async function show(context: CliContext) {
  const credentials = await requireCredentials(context.config.dataDir)
  printLine(context.stdout, credentials.apiKey)
}
