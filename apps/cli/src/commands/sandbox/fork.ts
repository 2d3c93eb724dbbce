import type { Forked } from '@atoll/client/platform/sandboxes'
import { Fault } from '@atoll/kit/fault'
import { Command } from 'commander'
import { parseCount, parseDuration } from '../../arguments.ts'
import { openPlatform, printJson, printLine } from '../../context.ts'
import type { CliContext } from '../../context.ts'

export function forkCommand(context: CliContext): Command {
  return new Command('fork')
    .description('make running copies of a running sandbox and print their ids')
    .argument('<id>', 'the sandbox to copy; it goes on')
    .option('-n, --count <number>', 'how many copies', parseCount, 1)
    .option('-t, --timeout <duration>', 'how long they live: 300, 90s, 5m, 2h', parseDuration, 300)
    .option('--json', 'print all that the server tells, the access tokens included')
    .addHelpText('after', help)
    .action((id: string, options: ForkOptions) => fork(context, id, options))
}

interface ForkOptions {
  readonly count: number
  readonly timeout: number
  readonly json?: boolean
}

async function fork(context: CliContext, id: string, { count, timeout, json }: ForkOptions) {
  const { platform } = await openPlatform(context)
  const forked = await platform.forkSandbox(id, { count, timeoutSeconds: timeout })
  const copies = forked.flatMap((one) => ('sandbox' in one ? [one.sandbox] : []))
  if (json) printJson(context.stdout, copies)
  else for (const { sandboxID } of copies) printLine(context.stdout, sandboxID)
  reportFailures(forked)
}

/** Throws if any fork failed. Called after the running forks were printed, so that their IDs are not lost. */
function reportFailures(forked: readonly Forked[]): void {
  const faults = forked.flatMap((one) => ('fault' in one ? [one.fault] : []))
  const [first] = faults
  if (!first) return
  const message = `${faults.length} of ${forked.length} copies failed: ${first.message}`
  throw new Fault(first.kind, first.reason, message, { cause: first })
}

const help = `
The copies begin with the memory, processes and files that the sandbox has at this moment;
under the \`runc\` runtime with its files alone. Each has an id and an address of its own.
Connections to the outside are closed, also those of the original.

Example:
  for copy in $(atoll sandbox fork <id> --count 3); do
    atoll sandbox exec $copy 'hostname'
  done`
