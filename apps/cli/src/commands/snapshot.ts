import type { CliContext } from '../context.ts'
import type { CliCommand } from '../declare/command.ts'
import { createCommand } from './snapshot/create.ts'
import { deleteCommand } from './builds/delete.ts'
import { listCommand } from './snapshot/list.ts'
import { tagCommand } from './builds/tag.ts'

export function snapshotCommands(context: CliContext): CliCommand[] {
  return [
    createCommand(context),
    listCommand(context),
    tagCommand(context, 'snapshot'),
    deleteCommand(context, 'snapshot'),
  ]
}
