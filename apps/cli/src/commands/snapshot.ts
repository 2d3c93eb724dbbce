import { Command } from 'commander'
import type { CliContext } from '../context.ts'
import { createCommand } from './snapshot/create.ts'
import { deleteCommand } from './snapshot/delete.ts'
import { listCommand } from './snapshot/list.ts'
import { tagCommand } from './snapshot/tag.ts'

export function snapshotCommand(context: CliContext): Command {
  return new Command('snapshot')
    .description('create, list, tag and delete snapshots of sandboxes')
    .addCommand(createCommand(context))
    .addCommand(listCommand(context))
    .addCommand(tagCommand(context))
    .addCommand(deleteCommand(context))
}
