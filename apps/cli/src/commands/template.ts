import { Command } from 'commander'
import type { CliContext } from '../context.ts'
import { catalogueCommand } from './template/catalogue.ts'
import { installCommand } from './template/install.ts'

export function templateCommand(context: CliContext): Command {
  return new Command('template')
    .description('list and install built-in templates')
    .addCommand(installCommand(context))
    .addCommand(catalogueCommand(context))
}
