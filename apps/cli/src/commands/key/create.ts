import { Command } from 'commander'
import { openPlatform, printJson, printLine } from '../../context.ts'
import type { CliContext } from '../../context.ts'

export function createCommand(context: CliContext): Command {
  return new Command('create')
    .description('create an API key and print it; it is shown only once')
    .argument('<name>', 'name of the key, to recognise it in lists')
    .option('--json', 'print the full reply of the server')
    .action((name: string, options: { readonly json?: boolean }) => create(context, name, options))
}

async function create(context: CliContext, name: string, options: { readonly json?: boolean }) {
  const { platform } = await openPlatform(context)
  const created = await platform.createKey(name)
  if (options.json) return printJson(context.stdout, created)
  printLine(context.stdout, created.key)
  printLine(context.stderr, 'Store this key now: the server keeps only its hash.')
}
