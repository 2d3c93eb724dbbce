import { Command } from 'commander'
import { openPlatform, printLine } from '../../context.ts'
import type { CliContext } from '../../context.ts'

export function deleteCommand(context: CliContext): Command {
  return new Command('delete')
    .alias('rm')
    .description('take back an API key; who uses it is refused from then on')
    .argument('<id>', 'the id that `atoll key list` shows, not the key itself')
    .action((id: string) => remove(context, id))
}

async function remove(context: CliContext, id: string) {
  const { platform } = await openPlatform(context)
  await platform.deleteKey(id)
  printLine(context.stdout, `deleted ${id}`)
}
