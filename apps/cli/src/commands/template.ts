import type { CliContext } from '../context.ts'
import type { CliCommand } from '../declare/command.ts'
import { deleteCommand } from './builds/delete.ts'
import { tagCommand } from './builds/tag.ts'
import { buildCommand } from './template/build.ts'
import { catalogueCommand } from './template/catalogue.ts'
import { createCommand } from './template/create.ts'
import { installCommand } from './template/install.ts'
import { listCommand } from './template/list.ts'
import { logsCommand } from './template/logs.ts'
import { showCommand } from './template/show.ts'

export function templateCommands(context: CliContext): CliCommand[] {
  return [
    buildCommand(context),
    createCommand(context),
    listCommand(context),
    showCommand(context),
    logsCommand(context),
    tagCommand(context, 'template'),
    deleteCommand(context, 'template'),
    installCommand(context),
    catalogueCommand(context),
  ]
}
