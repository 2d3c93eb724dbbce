import type { CliContext } from '../context.ts'
import { CliCommand } from '../declare/command.ts'
import { createCommand } from './key/create.ts'
import { deleteCommand } from './key/delete.ts'
import { listCommand } from './key/list.ts'
import { showCommand } from './key/show.ts'

export function keyCommand(context: CliContext): CliCommand {
  return new CliCommand('key')
    .description('manage the API keys of your team')
    .addCommand(createCommand(context))
    .addCommand(listCommand(context))
    .addCommand(deleteCommand(context))
    .addCommand(showCommand(context))
}
