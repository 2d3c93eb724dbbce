import type { CliContext } from '../context.ts'
import type { CliCommand } from '../declare/command.ts'
import { listCommand } from './node/list.ts'
import { showCommand } from './node/show.ts'
import { drainCommand, resumeCommand } from './node/status.ts'

export function nodeCommands(context: CliContext): CliCommand[] {
  return [listCommand(context), showCommand(context), drainCommand(context), resumeCommand(context)]
}
