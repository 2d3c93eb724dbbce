import { Command } from 'commander'
import type { CliContext } from '../context.ts'
import { createCommand } from './key/create.ts'
import { deleteCommand } from './key/delete.ts'
import { listCommand } from './key/list.ts'
import { showCommand } from './key/show.ts'

export function keyCommand(context: CliContext): Command {
  return new Command('key')
    .description('manage the API keys of your team')
    .addCommand(createCommand(context))
    .addCommand(listCommand(context))
    .addCommand(deleteCommand(context))
    .addCommand(showCommand(context))
}
