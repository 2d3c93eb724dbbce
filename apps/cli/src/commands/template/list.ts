import * as manage from '@atoll/contracts/templates/manage'
import type { Template } from '@atoll/client/replies'
import { z } from 'zod'
import { openPlatform, printJson, printLine } from '../../context.ts'
import type { CliContext } from '../../context.ts'
import { CliCommand } from '../../declare/command.ts'
import { formatRelative, printTable } from '../../output/table.ts'

export function listCommand(context: CliContext): CliCommand {
  return new CliCommand('list')
    .alias('ls')
    .description('list the templates of your team and of the installation, newest first')
    .option('-q, --quiet', 'print only IDs')
    .json(z.array(manage.Template))
    .action((options: ListOptions) => list(context, options))
}

interface ListOptions {
  readonly quiet?: boolean
  readonly json?: boolean
}

async function list({ stdout, ...context }: CliContext, { quiet, json }: ListOptions) {
  const { platform } = await openPlatform({ stdout, ...context })
  const templates = await Array.fromAsync(platform.listTemplates())
  if (json) return printJson(stdout, templates)
  if (quiet) {
    for (const { templateID } of templates) printLine(stdout, templateID)
    return
  }
  const now = new Date()
  printTable(
    stdout,
    head,
    templates.map((template) => toRow(template, now)),
  )
}

const head = ['ID', 'NAME', 'BUILD', 'CPUS', 'MEMORY', 'DISK', 'UPDATED', 'SANDBOXES']

function toRow(template: Template, now: Date): readonly string[] {
  const { templateID, names, buildStatus, cpuCount, memoryMB, diskSizeMB } = template
  const sizes = [String(cpuCount), `${memoryMB} MiB`, `${diskSizeMB} MiB`]
  return [
    templateID,
    names.join(', ') || '-',
    buildStatus,
    ...(cpuCount === 0 ? ['-', '-', '-'] : sizes),
    formatRelative(template.updatedAt, now),
    String(template.spawnCount),
  ]
}
