import { Sandbox } from '@atoll/contracts/sandboxes/views'
import { z } from 'zod'
import type { ForkOutcome } from '@atoll/client/platform/sandboxes'
import { Fault } from '@atoll/kit/fault'
import { parseCount, parseDuration } from '../../arguments.ts'
import { openPlatform, printJson, printLine } from '../../context.ts'
import type { CliContext } from '../../context.ts'
import { CliCommand } from '../../declare/command.ts'

export function forkCommand(context: CliContext): CliCommand {
  return new CliCommand('fork')
    .description('fork a running sandbox and print the IDs of the forks')
    .argument('<id>', 'sandbox to fork; it keeps running')
    .option('-n, --count <number>', 'number of forks', parseCount, 1)
    .option(
      '-t, --timeout <duration>',
      'lifetime of the forks: 300, 90s, 5m, 2h',
      parseDuration,
      300,
    )
    .json(z.array(Sandbox), 'print the forks as JSON, including access tokens')
    .details(help)
    .action((id: string, options: ForkOptions) => fork(context, id, options))
}

interface ForkOptions {
  readonly count: number
  readonly timeout: number
  readonly json?: boolean
}

async function fork(context: CliContext, id: string, { count, timeout, json }: ForkOptions) {
  const { platform } = await openPlatform(context)
  const results = await platform.forkSandbox(id, { count, timeoutSeconds: timeout })
  const forks = results.flatMap((result) => ('sandbox' in result ? [result.sandbox] : []))
  if (json) printJson(context.stdout, forks)
  else for (const { sandboxID } of forks) printLine(context.stdout, sandboxID)
  reportFailures(results)
}

/** Throws if any fork failed. Called after the running forks were printed, so that their IDs are not lost. */
function reportFailures(results: readonly ForkOutcome[]): void {
  const faults = results.flatMap((result) => ('fault' in result ? [result.fault] : []))
  const [first] = faults
  if (!first) return
  const message = `${faults.length} of ${results.length} forks failed: ${first.message}`
  throw new Fault(first.kind, first.reason, message, { cause: first })
}

const help = `
Each fork starts with the current memory, processes and files of the sandbox (with the
\`runc\` runtime: files only) and has its own ID and address. Connections to the outside
are closed, in the forks and in the original.

Example:
  for fork in $(atoll sandbox fork <id> --count 3); do
    atoll sandbox exec $fork 'hostname'
  done`
