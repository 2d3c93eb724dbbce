import { parseDuration } from '../../arguments.ts'
import { openPlatform, printLine } from '../../context.ts'
import type { CliContext } from '../../context.ts'
import { CliCommand } from '../../declare/command.ts'
import { forEachId } from '../each-id.ts'

export function resumeCommand(context: CliContext): CliCommand {
  return new CliCommand('resume')
    .description('resume paused sandboxes')
    .argument('<ids...>', 'sandbox IDs')
    .option('-t, --timeout <duration>', 'lifetime from now: 300, 90s, 5m, 2h', parseDuration)
    .option('--no-memory', 'boot from the files, even if memory was saved')
    .details(help)
    .action((ids: string[], options: ResumeOptions) => resume(context, ids, options))
}

interface ResumeOptions {
  readonly timeout?: number
  readonly memory: boolean
}

async function resume(context: CliContext, ids: readonly string[], options: ResumeOptions) {
  const { platform } = await openPlatform(context)
  const settings = { timeoutSeconds: options.timeout, memory: options.memory }
  await forEachId(ids, async (id) => {
    const { isResumed } = await platform.connectSandbox(id, settings)
    printLine(context.stdout, `${isResumed ? 'resumed' : 'already running'} ${id}`)
  })
}

const help = `
The default lifetime is 5 minutes from now. For a running sandbox the timeout is only ever
extended.

Examples:
  atoll sandbox resume <id> --timeout 1h
  atoll sandbox resume $(atoll sandbox list --state paused --quiet)`
