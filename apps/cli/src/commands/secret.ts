import type { CliContext } from '../context.ts'
import { CliCommand } from '../declare/command.ts'
import { createCommand } from './secret/create.ts'
import { deleteCommand } from './secret/delete.ts'
import { listCommand } from './secret/list.ts'
import { updateCommand } from './secret/update.ts'

export function secretCommand(context: CliContext): CliCommand {
  return new CliCommand('secret')
    .description('manage secrets, which header rules of sandboxes use')
    .addCommand(createCommand(context))
    .addCommand(updateCommand(context))
    .addCommand(listCommand(context))
    .addCommand(deleteCommand(context))
}
