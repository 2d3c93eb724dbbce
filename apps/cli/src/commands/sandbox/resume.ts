import { Command } from 'commander'
import { parseDuration } from '../../arguments.ts'
import { openPlatform, printLine } from '../../context.ts'
import type { CliContext } from '../../context.ts'
import { forEachId } from '../each-id.ts'

export function resumeCommand(context: CliContext): Command {
  return new Command('resume')
    .description('let paused sandboxes go on where they were')
    .argument('<ids...>', 'the sandboxes to resume')
    .option('-t, --timeout <duration>', 'how long they live: 300, 90s, 5m, 2h', parseDuration)
    .option('--no-memory', 'boot them anew from their files, even if memory was kept')
    .addHelpText('after', help)
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
Without --timeout they live 5 minutes from now. One that runs already lives that long at
least, and never shorter than it would have.

Examples:
  atoll sandbox resume <id> --timeout 1h
  atoll sandbox resume $(atoll sandbox list --state paused --quiet)`
