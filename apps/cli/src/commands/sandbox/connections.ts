import { setTimeout as sleep } from 'node:timers/promises'
import type * as replies from '@atoll/client/replies'
import { SandboxConnection } from '@atoll/contracts/network/connections'
import { Fault } from '@atoll/kit/fault'
import { z } from 'zod'
import { openPlatform, printJson, printLine } from '../../context.ts'
import type { CliContext } from '../../context.ts'
import { CliCommand } from '../../declare/command.ts'
import { printTable } from '../../output/table.ts'
import { visibleJson, visibleName } from '../../output/visible-text.ts'

export function connectionsCommand(context: CliContext): CliCommand {
  return new CliCommand('connections')
    .description('show the outgoing connections of a sandbox, allowed and denied')
    .argument('<id>', 'sandbox ID')
    .option('-f, --follow', 'print new ones until the sandbox ends')
    .option('--denied', 'only denied ones')
    .json(z.array(SandboxConnection), 'print as JSON; with --follow, one object per line')
    .details(help)
    .action((id: string, options: ConnectionsOptions) => connections(context, id, options))
}

interface ConnectionsOptions {
  readonly follow?: boolean
  readonly denied?: boolean
  readonly json?: boolean
}

async function connections(
  context: CliContext,
  id: string,
  { follow, denied, json }: ConnectionsOptions,
) {
  const { stdout, stderr } = context
  const { platform } = await openPlatform(context)
  const list = async () =>
    (await platform.listConnections(id)).filter(({ verdict }) => !denied || verdict === 'denied')
  if (!follow) {
    const found = await list()
    if (json) return printJson(stdout, found)
    if (found.length === 0) return printLine(stderr, 'No connections yet.')
    return printTable(
      stdout,
      ['LAST', 'VERDICT', 'PROTOCOL', 'DESTINATION', 'COUNT', 'BYTES'],
      found.map(toRow),
    )
  }
  const counts = new Map<string, number>()
  for (;;) {
    const found = await list().catch(endOfSandbox)
    if (!found) return
    for (const each of found.toReversed()) {
      const key = [each.verdict, each.protocol, destinationOf(each)].join(' ')
      if (counts.get(key) === each.count) continue
      counts.set(key, each.count)
      const line = json ? visibleJson(JSON.stringify(each)) : visibleName(toRow(each).join('  '))
      printLine(stdout, line)
    }
    await sleep(pollIntervalMs)
  }
}

const pollIntervalMs = 2000

function endOfSandbox(thrown: unknown): undefined {
  if (thrown instanceof Fault && thrown.kind === 'not_found') return
  throw thrown
}

function toRow(connection: replies.SandboxConnection): readonly string[] {
  const { lastAt, verdict, protocol, count, sentBytes, receivedBytes } = connection
  const bytes = sentBytes === undefined ? '-' : `${sentBytes} out, ${receivedBytes ?? 0} in`
  return [lastAt, verdict, protocol, destinationOf(connection), String(count), bytes]
}

function destinationOf({ name, address, port }: replies.SandboxConnection): string {
  if (name === undefined) return `${address ?? ''}:${port}`
  return address === undefined ? name : `${name}:${port} (${address})`
}

const help = `
Names and bytes are known where the rules of the sandbox have domains, headers or a proxy. Other connections are
counted by address for half an hour.
`
