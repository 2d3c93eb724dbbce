import { Secret } from '@atoll/contracts/secrets'
import { z } from 'zod'
import { openPlatform, printJson, printLine } from '../../context.ts'
import type { CliContext } from '../../context.ts'
import { CliCommand } from '../../declare/command.ts'
import { formatRelative, printTable } from '../../output/table.ts'

export function listCommand(context: CliContext): CliCommand {
  return new CliCommand('list')
    .alias('ls')
    .description('list the secrets of your team, newest first, without their values')
    .json(z.array(Secret))
    .action((options: { readonly json?: boolean }) => list(context, options))
}

async function list(context: CliContext, { json }: { readonly json?: boolean }) {
  const { platform } = await openPlatform(context)
  const secrets = await Array.fromAsync(platform.listSecrets())
  if (json) return printJson(context.stdout, secrets)
  if (secrets.length === 0) {
    return printLine(context.stderr, 'No secrets. Create one: atoll secret create <name>')
  }
  const now = new Date()
  const rows = secrets.map(({ secretID, name, currentVersion, updatedAt, metadata }) => [
    ...[secretID, name, String(currentVersion), formatRelative(updatedAt, now)],
    Object.entries(metadata)
      .map((pair) => pair.join('='))
      .join(', ') || '-',
  ])
  printTable(context.stdout, ['ID', 'NAME', 'VERSION', 'UPDATED', 'METADATA'], rows)
}
