import { openPlatform, printLine } from '../../context.ts'
import type { CliContext } from '../../context.ts'
import { CliCommand } from '../../declare/command.ts'
import { forEachId } from '../each-id.ts'

export function deleteCommand(context: CliContext): CliCommand {
  return new CliCommand('delete')
    .alias('rm')
    .description('delete secrets; headers that refer to them are no longer set')
    .argument('<secrets...>', 'secret IDs or names')
    .action((secrets: string[]) => remove(context, secrets))
}

async function remove(context: CliContext, secrets: readonly string[]) {
  const { platform } = await openPlatform(context)
  await forEachId(secrets, async (secret) => {
    await platform.deleteSecret(secret)
    printLine(context.stdout, `deleted ${secret}`)
  })
}
