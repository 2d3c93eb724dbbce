import type { CliContext } from '../context.ts'
import { CliCommand } from '../declare/command.ts'
import { localCommand } from './tls/local.ts'

export function tlsCommand(context: CliContext): CliCommand {
  return new CliCommand('tls')
    .description('manage the certificates of the server on this machine')
    .addCommand(localCommand(context))
}
