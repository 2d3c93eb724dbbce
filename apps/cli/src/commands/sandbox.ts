import type { CliContext } from '../context.ts'
import { CliCommand } from '../declare/command.ts'
import { cpCommand } from './sandbox/cp.ts'
import { createCommand } from './sandbox/create.ts'
import { execCommand } from './sandbox/exec.ts'
import { forkCommand } from './sandbox/fork.ts'
import { killCommand } from './sandbox/kill.ts'
import { listCommand } from './sandbox/list.ts'
import { logsCommand } from './sandbox/logs.ts'
import { metricsCommand } from './sandbox/metrics.ts'
import { openCommand } from './sandbox/open.ts'
import { pauseCommand } from './sandbox/pause.ts'
import { portsCommand } from './sandbox/ports.ts'
import { resumeCommand } from './sandbox/resume.ts'
import { shellCommand } from './sandbox/shell.ts'

export function sandboxCommand(context: CliContext): CliCommand {
  return new CliCommand('sandbox')
    .alias('sb')
    .description('create, list, use, pause, fork and kill sandboxes')
    .enablePositionalOptions()
    .addCommand(createCommand(context))
    .addCommand(listCommand(context))
    .addCommand(execCommand(context))
    .addCommand(shellCommand(context))
    .addCommand(cpCommand(context))
    .addCommand(logsCommand(context))
    .addCommand(metricsCommand(context))
    .addCommand(portsCommand(context))
    .addCommand(openCommand(context))
    .addCommand(pauseCommand(context))
    .addCommand(resumeCommand(context))
    .addCommand(forkCommand(context))
    .addCommand(killCommand(context))
}
