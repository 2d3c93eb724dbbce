import { Command } from 'commander'
import type { CliContext } from '../context.ts'
import { localCommand } from './tls/local.ts'

export function tlsCommand(context: CliContext): Command {
  return new Command('tls')
    .description('manage the certificates of the server on this machine')
    .addCommand(localCommand(context))
}
