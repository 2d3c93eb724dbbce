import { CatalogueTemplate } from '@atoll/contracts/templates/catalogue'
import { z } from 'zod'
import { openPlatform, printJson } from '../../context.ts'
import type { CliContext } from '../../context.ts'
import { CliCommand } from '../../declare/command.ts'
import { printTable } from '../../output/table.ts'

export function catalogueCommand(context: CliContext): CliCommand {
  return new CliCommand('catalogue')
    .description('list the built-in templates that can be installed')
    .json(z.array(CatalogueTemplate))
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
  printTable(stdout, ['NAME', 'TEMPLATE', 'STATE', 'DESCRIPTION'], rows)
}
