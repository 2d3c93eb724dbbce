import type { CliContext } from '../context.ts'
import type { CliCommand } from '../declare/command.ts'
import { joinCommand, runCommand, tokenCommand } from './node/join.ts'
import { removeCommand } from './node/remove.ts'

export function edgeCommands(context: CliContext): CliCommand[] {
  return [
    runCommand(context, 'edge'),
    tokenCommand(context, 'edge'),
    joinCommand(context, 'edge'),
    removeCommand(context),
  ]
}
