import type { CliContext } from '../context.ts'
import type { CliCommand } from '../declare/command.ts'
import { joinCommand, runCommand, tokenCommand } from './node/join.ts'
import { listCommand } from './node/list.ts'
import { removeNodeCommand } from './node/remove.ts'
import { showCommand } from './node/show.ts'
import { drainCommand, resumeCommand } from './node/status.ts'

export function nodeCommands(context: CliContext): CliCommand[] {
  return [
    ...[listCommand(context), showCommand(context), drainCommand(context), resumeCommand(context)],
    ...[runCommand(context, 'node'), tokenCommand(context, 'node'), joinCommand(context, 'node')],
    removeNodeCommand(context),
  ]
}
