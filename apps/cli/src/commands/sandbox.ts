import type { CliContext } from '../context.ts'
import type { CliCommand } from '../declare/command.ts'
import { connectionsCommand } from './sandbox/connections.ts'
import { cpCommand } from './sandbox/cp.ts'
import { createCommand } from './sandbox/create.ts'
import { diffCommand } from './sandbox/diff.ts'
import { execCommand } from './sandbox/exec.ts'
import { forkCommand } from './sandbox/fork.ts'
import { lineageCommand } from './sandbox/lineage.ts'
import { killCommand } from './sandbox/kill.ts'
import { listCommand } from './sandbox/list.ts'
import { logsCommand } from './sandbox/logs.ts'
import { metricsCommand } from './sandbox/metrics.ts'
import { openCommand } from './sandbox/open.ts'
import { pauseCommand } from './sandbox/pause.ts'
import { portsCommand } from './sandbox/ports.ts'
import { resumeCommand } from './sandbox/resume.ts'
import { shellCommand } from './sandbox/shell.ts'

export function sandboxCommands(context: CliContext): CliCommand[] {
  return [
    createCommand(context),
    listCommand(context),
    execCommand(context),
    shellCommand(context),
    cpCommand(context),
    diffCommand(context),
    logsCommand(context),
    metricsCommand(context),
    connectionsCommand(context),
    lineageCommand(context),
    portsCommand(context),
    openCommand(context),
    pauseCommand(context),
    resumeCommand(context),
    forkCommand(context),
    killCommand(context),
  ]
}
