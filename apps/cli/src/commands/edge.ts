import type { CliContext } from '../context.ts'
import type { CliCommand } from '../declare/command.ts'
import { joinCommand, removeCommand, runCommand, tokenCommand } from './node/join.ts'

export function edgeCommands(context: CliContext): CliCommand[] {
  return [
    runCommand(context, 'edge'),
    tokenCommand(context, 'edge'),
    joinCommand(context, 'edge'),
    removeCommand(context),
  ]
}
