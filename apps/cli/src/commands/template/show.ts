import { TemplateWithBuilds } from '@atoll/contracts/templates/manage'
import { openPlatform, printJson, printLine } from '../../context.ts'
import type { CliContext } from '../../context.ts'
import { CliCommand } from '../../declare/command.ts'
import { formatRelative, printTable } from '../../output/table.ts'

export function showCommand(context: CliContext): CliCommand {
  return new CliCommand('show')
    .description('show a template of your team with its builds, newest first')
    .argument('<template>', 'template ID or name')
    .json(TemplateWithBuilds)
    .action((template: string, options: { readonly json?: boolean }) =>
      show(context, template, options),
    )
}

async function show(context: CliContext, reference: string, { json }: { readonly json?: boolean }) {
  const { stdout } = context
  const { platform } = await openPlatform(context)
  const template = await platform.getTemplate(reference)
  if (json) return printJson(stdout, template)
  const now = new Date()
  const lines = [
    `ID         ${template.templateID}`,
    `names      ${template.names.join(', ') || '-'}`,
    `public     ${template.public ? 'yes' : 'no'}`,
    `created    ${formatRelative(template.createdAt, now)}`,
    `sandboxes  ${template.spawnCount}`,
  ]
  printLine(stdout, `${lines.join('\n')}\n`)
  const rows = template.builds.map(({ buildID, status, createdAt, cpuCount, memoryMB }) => [
    ...[buildID, status, formatRelative(createdAt, now)],
    ...[String(cpuCount), `${memoryMB} MiB`],
  ])
  printTable(stdout, ['BUILD', 'STATUS', 'CREATED', 'CPUS', 'MEMORY'], rows)
}
