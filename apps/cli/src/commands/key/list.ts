import { TeamApiKey } from '@atoll/contracts/teams/api-keys'
import { z } from 'zod'
import type { ApiKey } from '@atoll/client/replies'
import { openPlatform, printJson } from '../../context.ts'
import type { CliContext } from '../../context.ts'
import { CliCommand } from '../../declare/command.ts'
import { formatRelative, printTable } from '../../output/table.ts'

export function listCommand(context: CliContext): CliCommand {
  return new CliCommand('list')
    .alias('ls')
    .description('list the API keys of your team, without their secret part')
    .json(z.array(TeamApiKey))
    .action((options: { readonly json?: boolean }) => list(context, options))
}

async function list(context: CliContext, options: { readonly json?: boolean }) {
  const { platform } = await openPlatform(context)
  const keys = await platform.listKeys()
  if (options.json) return printJson(context.stdout, keys)
  const now = new Date()
  const rows = keys.map((key) => toRow(key, now))
  printTable(context.stdout, head, rows)
}

const head = ['ID', 'NAME', 'KEY', 'CREATED', 'LAST USED']

function toRow({ id, name, mask, createdAt, lastUsed }: ApiKey, now: Date): readonly string[] {
  const key = `${mask.prefix}${mask.maskedValuePrefix}...${mask.maskedValueSuffix}`
  const used = lastUsed ? formatRelative(lastUsed, now) : 'never'
  return [id, name, key, formatRelative(createdAt, now), used]
}
