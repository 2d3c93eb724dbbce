import { setTimeout as sleep } from 'node:timers/promises'
import type { PlatformClient } from '@atoll/client/platform'
import type { LogQuery } from '@atoll/client/platform/observations'
import type * as replies from '@atoll/client/replies'
import { LogLevel, SandboxLogEntry } from '@atoll/contracts/logs'
import { Fault } from '@atoll/kit/fault'
import { Option } from 'commander'
import { z } from 'zod'
import { parseCount } from '../../arguments.ts'
import { openPlatform, printJson, printLine } from '../../context.ts'
import type { CliContext } from '../../context.ts'
import { CliCommand } from '../../declare/command.ts'
import { UsageError } from '../../failure.ts'
import { plainOutput, visibleJson, visibleName } from '../../output/visible-text.ts'

export function logsCommand(context: CliContext): CliCommand {
  return new CliCommand('logs')
    .description('print the log of a sandbox: its processes and their output')
    .argument('<id>', 'sandbox ID; also one that ended in the last 7 days')
    .option('-f, --follow', 'wait for more entries until the sandbox ends')
    .option(
      '-n, --limit <count>',
      'number of entries, the newest ones: up to 1000',
      parseCount,
      100,
    )
    .addOption(new Option('-l, --level <level>', 'least level').choices(LogLevel.options))
    .option('--search <text>', 'only entries that contain this text')
    .json(z.array(SandboxLogEntry), 'print as JSON; with --follow, one object per line')
    .action((id: string, options: LogsOptions) => logs(context, id, options))
}

interface LogsOptions extends Pick<LogQuery, 'level' | 'search'> {
  readonly follow?: boolean
  readonly limit: number
  readonly json?: boolean
}

async function logs(context: CliContext, id: string, options: LogsOptions) {
  const { limit, level, search, follow, json } = options
  if (limit > 1000) throw new UsageError('--limit can be at most 1000.')
  const { stdout } = context
  const { platform } = await openPlatform(context)
  const newest = await platform.readSandboxLogs(id, { limit, level, search })
  // The server has no entries of an unknown sandbox either.
  if (newest.length === 0) await platform.getSandbox(id)
  const entries = newest.toReversed()
  if (json && !follow) return printJson(stdout, entries)
  const print = (entry: replies.SandboxLogEntry) =>
    printLine(stdout, json ? visibleJson(JSON.stringify(entry)) : formatEntry(entry))
  for (const entry of entries) print(entry)
  if (!follow) return
  const filter = { level, search, after: entries.at(-1)?.timestamp }
  for await (const entry of followLogs(platform, id, filter)) print(entry)
}

const pollIntervalMs = 1000
const pageSize = 1000

/** Yields later entries until the sandbox is gone. */
async function* followLogs(
  platform: PlatformClient,
  id: string,
  { after, ...filter }: Pick<LogQuery, 'level' | 'search'> & { readonly after: string | undefined },
): AsyncGenerator<replies.SandboxLogEntry> {
  let last = after ?? ''
  let cursor = after === undefined ? undefined : Date.parse(after)
  for (;;) {
    // Checked before the log is read, so that the last entries are not lost.
    const isThere = await exists(platform, id)
    const query = { ...filter, cursor, limit: pageSize, direction: 'forward' } as const
    const page = await platform.readSandboxLogs(id, query)
    const fresh = page.filter(({ timestamp }) => timestamp > last)
    yield* fresh
    last = fresh.at(-1)?.timestamp ?? last
    if (last !== '') cursor = Date.parse(last)
    // A full page of one millisecond would come again and again.
    if (page.length === pageSize && fresh.length === 0) cursor = (cursor ?? 0) + 1
    if (page.length === pageSize) continue
    if (!isThere) return
    await sleep(pollIntervalMs)
  }
}

async function exists(platform: PlatformClient, id: string): Promise<boolean> {
  try {
    await platform.getSandbox(id)
    return true
  } catch (thrown) {
    if (thrown instanceof Fault && thrown.kind === 'not_found') return false
    throw thrown
  }
}

/** One line per entry: a message with line breaks must not look like several entries. */
function formatEntry({ timestamp, level, message, fields }: replies.SandboxLogEntry): string {
  const details = Object.entries(fields).map(([name, value]) => `${name}=${value}`)
  const line = `${timestamp} ${level.padEnd(5)} ${plainOutput(message).trimEnd()}`
  return visibleName(details.length > 0 ? `${line}  [${details.join(' ')}]` : line)
}
