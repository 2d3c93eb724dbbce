import type { CliContext } from '../context.ts'
import type { CliCommand } from '../declare/command.ts'
import { localCommand } from './tls/local.ts'

export function tlsCommands(context: CliContext): CliCommand[] {
  return [localCommand(context)]
}
