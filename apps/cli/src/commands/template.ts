import type { CliContext } from '../context.ts'
import { CliCommand } from '../declare/command.ts'
import { deleteCommand } from './builds/delete.ts'
import { tagCommand } from './builds/tag.ts'
import { buildCommand } from './template/build.ts'
import { catalogueCommand } from './template/catalogue.ts'
import { createCommand } from './template/create.ts'
import { installCommand } from './template/install.ts'
import { listCommand } from './template/list.ts'
import { logsCommand } from './template/logs.ts'
import { showCommand } from './template/show.ts'

export function templateCommand(context: CliContext): CliCommand {
  return new CliCommand('template')
    .alias('tpl')
    .description('build, list, tag, install and delete templates')
    .addCommand(buildCommand(context))
    .addCommand(createCommand(context))
    .addCommand(listCommand(context))
    .addCommand(showCommand(context))
    .addCommand(logsCommand(context))
    .addCommand(tagCommand(context, 'template'))
    .addCommand(deleteCommand(context, 'template'))
    .addCommand(installCommand(context))
    .addCommand(catalogueCommand(context))
}
