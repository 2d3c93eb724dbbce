import { openPlatform, printLine } from '../../context.ts'
import type { CliContext } from '../../context.ts'
import { CliCommand } from '../../declare/command.ts'

export function deleteCommand(context: CliContext): CliCommand {
  return new CliCommand('delete')
    .alias('rm')
    .description('delete an API key; requests with it are refused from then on')
    .argument('<id>', 'key ID from `atoll key list`, not the key itself')
    .action((id: string) => remove(context, id))
}

async function remove(context: CliContext, id: string) {
  const { platform } = await openPlatform(context)
  await platform.deleteKey(id)
  printLine(context.stdout, `deleted ${id}`)
}
