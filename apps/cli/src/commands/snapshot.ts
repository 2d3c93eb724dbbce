import type { CliContext } from '../context.ts'
import { CliCommand } from '../declare/command.ts'
import { createCommand } from './snapshot/create.ts'
import { deleteCommand } from './builds/delete.ts'
import { listCommand } from './snapshot/list.ts'
import { tagCommand } from './builds/tag.ts'

export function snapshotCommand(context: CliContext): CliCommand {
  return new CliCommand('snapshot')
    .description('create, list, tag and delete snapshots of sandboxes')
    .addCommand(createCommand(context))
    .addCommand(listCommand(context))
    .addCommand(tagCommand(context, 'snapshot'))
    .addCommand(deleteCommand(context, 'snapshot'))
}
