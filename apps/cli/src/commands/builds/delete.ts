import { openPlatform, printLine } from '../../context.ts'
import type { CliContext } from '../../context.ts'
import { CliCommand } from '../../declare/command.ts'
import { forEachId } from '../each-id.ts'

/** Declares `delete` of snapshots and of templates, which the server treats alike. */
export function deleteCommand(context: CliContext, kind: 'snapshot' | 'template'): CliCommand {
  const all = kind === 'snapshot' ? 'all its snapshots' : 'all its builds'
  return new CliCommand('delete')
    .alias('rm')
    .description(`delete ${kind}s; refused while sandboxes created from them exist`)
    .argument('<ids...>', `${kind} IDs or names; a name without a tag means ${all}`)
    .action((ids: string[]) => remove(context, ids))
}

async function remove(context: CliContext, ids: readonly string[]) {
  const { platform } = await openPlatform(context)
  await forEachId(ids, async (id) => {
    await platform.deleteSnapshot(id)
    printLine(context.stdout, `deleted ${id}`)
  })
}
