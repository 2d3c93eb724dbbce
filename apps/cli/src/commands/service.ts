import type { CliContext } from '../context.ts'
import type { CliCommand } from '../declare/command.ts'
import { installCommand } from './service/install.ts'
import { uninstallCommand } from './service/uninstall.ts'

export function serviceCommands(context: CliContext): CliCommand[] {
  return [installCommand(context), uninstallCommand(context)]
}
