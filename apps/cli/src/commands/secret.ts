import type { CliContext } from '../context.ts'
import type { CliCommand } from '../declare/command.ts'
import { createCommand } from './secret/create.ts'
import { deleteCommand } from './secret/delete.ts'
import { listCommand } from './secret/list.ts'
import { updateCommand } from './secret/update.ts'

export function secretCommands(context: CliContext): CliCommand[] {
  return [
    createCommand(context),
    updateCommand(context),
    listCommand(context),
    deleteCommand(context),
  ]
}
