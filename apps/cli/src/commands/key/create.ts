import { Command } from 'commander'
import { openPlatform, printJson, printLine } from '../../context.ts'
import type { CliContext } from '../../context.ts'

export function createCommand(context: CliContext): Command {
  return new Command('create')
    .description('make an API key and print it; it is shown this once only')
    .argument('<name>', 'what it is for')
    .option('--json', 'print all that the server tells')
    .action((name: string, options: { readonly json?: boolean }) => create(context, name, options))
}

async function create(context: CliContext, name: string, options: { readonly json?: boolean }) {
  const { platform } = await openPlatform(context)
  const created = await platform.createKey(name)
  if (options.json) return printJson(context.stdout, created)
  printLine(context.stdout, created.key)
  printLine(context.stderr, 'Keep it safe: the server has only a hash of it.')
}
