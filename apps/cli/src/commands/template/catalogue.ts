import { Command } from 'commander'
import { openPlatform, printJson, printLine } from '../../context.ts'
import type { CliContext } from '../../context.ts'
import { formatTable } from '../../table.ts'

export function catalogueCommand(context: CliContext): Command {
  return new Command('catalogue')
    .description('list the built-in templates that can be installed')
    .option('--json', 'print as JSON')
    .action((options: { readonly json?: boolean }) => list(context, options))
}

async function list(context: CliContext, { json }: { readonly json?: boolean }) {
  const { stdout } = context
  const { platform } = await openPlatform(context)
  const entries = await platform.listCatalogue()
  if (json) return printJson(stdout, entries)
  const rows = entries.map(({ name, templateName, state, progress, description }) => [
    name,
    templateName,
    progress ? `${state} ${progress.percent} %` : state,
    description,
  ])
  printLine(stdout, formatTable(stdout, ['NAME', 'TEMPLATE', 'STATE', 'DESCRIPTION'], rows))
}
