import * as views from '@atoll/contracts/sandboxes/views'
import { z } from 'zod'
import type { ListedSandbox, SandboxState } from '@atoll/client/replies'
import { Option } from 'commander'
import { collectPair } from '../../arguments.ts'
import { openPlatform, printJson, printLine } from '../../context.ts'
import type { CliContext } from '../../context.ts'
import { CliCommand } from '../../declare/command.ts'
import { formatRelative, printTable } from '../../output/table.ts'

export function listCommand(context: CliContext): CliCommand {
  return new CliCommand('list')
    .alias('ls')
    .description('list your sandboxes, newest first')
    .addOption(
      new Option('-s, --state <state>', 'only sandboxes in this state').choices([
        'running',
        'paused',
      ]),
    )
    .option(
      '-m, --metadata <name=value>',
      'only sandboxes with this metadata; repeatable',
      collectPair,
    )
    .option('-q, --quiet', 'print only IDs')
    .json(z.array(views.ListedSandbox))
    .details(help)
    .action((options: ListOptions) => list(context, options))
}

interface ListOptions {
  readonly state?: SandboxState
  readonly metadata?: Record<string, string>
  readonly quiet?: boolean
  readonly json?: boolean
}

async function list(context: CliContext, { state, metadata, quiet, json }: ListOptions) {
  const { platform } = await openPlatform(context)
  const filter = { states: state && [state], metadata }
  const sandboxes = await Array.fromAsync(platform.listSandboxes(filter))
  if (json) return printJson(context.stdout, sandboxes)
  if (quiet) {
    for (const { sandboxID } of sandboxes) printLine(context.stdout, sandboxID)
    return
  }
  if (sandboxes.length === 0) {
    return printLine(context.stderr, 'No sandboxes. Create one: atoll sandbox create')
  }
  const now = new Date()
  const rows = sandboxes.map((sandbox) => toRow(sandbox, now))
  printTable(context.stdout, head, rows)
}

const head = ['ID', 'TEMPLATE', 'STATE', 'STARTED', 'ENDS']

function toRow(sandbox: ListedSandbox, now: Date): readonly string[] {
  return [
    sandbox.sandboxID,
    sandbox.alias ?? sandbox.templateID,
    sandbox.state,
    formatRelative(sandbox.startedAt, now),
    // A paused sandbox has no end time.
    sandbox.state === 'running' ? formatRelative(sandbox.endAt, now) : '-',
  ]
}

const help = `
Examples:
  atoll sandbox list --state paused
  atoll sandbox kill $(atoll sandbox list --quiet --metadata purpose=demo)`
