import { Command } from 'commander'
import { openPlatform, printLine } from '../../context.ts'
import type { CliContext } from '../../context.ts'
import { forEachId } from '../each-id.ts'

export function deleteCommand(context: CliContext): Command {
  return new Command('delete')
    .alias('rm')
    .description('delete snapshots; refused while sandboxes created from them exist')
    .argument('<ids...>', 'snapshot IDs or names; a name without a tag means all its snapshots')
    .action((ids: string[]) => remove(context, ids))
}

async function remove(context: CliContext, ids: readonly string[]) {
  const { platform } = await openPlatform(context)
  await forEachId(ids, async (id) => {
    await platform.deleteSnapshot(id)
    printLine(context.stdout, `deleted ${id}`)
  })
}
