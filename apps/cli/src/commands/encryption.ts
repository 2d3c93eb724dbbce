import type { CliContext } from '../context.ts'
import type { CliCommand } from '../declare/command.ts'
import { rotateCommand } from './encryption/rotate.ts'

export function encryptionCommands(context: CliContext): CliCommand[] {
  return [rotateCommand(context)]
}
