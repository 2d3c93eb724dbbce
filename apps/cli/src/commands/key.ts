import type { CliContext } from '../context.ts'
import type { CliCommand } from '../declare/command.ts'
import { createCommand } from './key/create.ts'
import { deleteCommand } from './key/delete.ts'
import { listCommand } from './key/list.ts'
import { showCommand } from './key/show.ts'

export function keyCommands(context: CliContext): CliCommand[] {
  return [
    createCommand(context),
    listCommand(context),
    deleteCommand(context),
    showCommand(context),
  ]
}
