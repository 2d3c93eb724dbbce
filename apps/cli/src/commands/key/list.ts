import type { ApiKey } from '@atoll/client/replies'
import { Command } from 'commander'
import { openPlatform, printJson, printLine } from '../../context.ts'
import type { CliContext } from '../../context.ts'
import { formatRelative, formatTable } from '../../table.ts'

export function listCommand(context: CliContext): Command {
  return new Command('list')
    .alias('ls')
    .description('list the API keys of your team, without their secret part')
    .option('--json', 'print as JSON')
    .action((options: { readonly json?: boolean }) => list(context, options))
}

async function list(context: CliContext, options: { readonly json?: boolean }) {
  const { platform } = await openPlatform(context)
  const keys = await platform.listKeys()
  if (options.json) return printJson(context.stdout, keys)
  const now = new Date()
  const rows = keys.map((key) => toRow(key, now))
  printLine(context.stdout, formatTable(context.stdout, head, rows))
}

const head = ['ID', 'NAME', 'KEY', 'CREATED', 'LAST USED']

function toRow({ id, name, mask, createdAt, lastUsed }: ApiKey, now: Date): readonly string[] {
  const key = `${mask.prefix}${mask.maskedValuePrefix}...${mask.maskedValueSuffix}`
  const used = lastUsed ? formatRelative(lastUsed, now) : 'never'
  return [id, name, key, formatRelative(createdAt, now), used]
}
