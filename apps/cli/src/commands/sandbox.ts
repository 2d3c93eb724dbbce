import { Command } from 'commander'
import type { CliContext } from '../context.ts'
import { createCommand } from './sandbox/create.ts'
import { execCommand } from './sandbox/exec.ts'
import { forkCommand } from './sandbox/fork.ts'
import { killCommand } from './sandbox/kill.ts'
import { listCommand } from './sandbox/list.ts'
import { pauseCommand } from './sandbox/pause.ts'
import { resumeCommand } from './sandbox/resume.ts'
import { shellCommand } from './sandbox/shell.ts'

export function sandboxCommand(context: CliContext): Command {
  return new Command('sandbox')
    .alias('sb')
    .description('create, list, use, pause, fork and kill sandboxes')
    .enablePositionalOptions()
    .addCommand(createCommand(context))
    .addCommand(listCommand(context))
    .addCommand(execCommand(context))
    .addCommand(shellCommand(context))
    .addCommand(pauseCommand(context))
    .addCommand(resumeCommand(context))
    .addCommand(forkCommand(context))
    .addCommand(killCommand(context))
}
