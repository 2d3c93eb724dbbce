import { printLine } from '../../context.ts'
import type { CliContext } from '../../context.ts'
import { CliCommand } from '../../declare/command.ts'
import { forEachId } from '../each-id.ts'
import { drainAndMove } from './drain-and-move.ts'
import { openNodes } from './open-nodes.ts'

export function drainCommand(context: CliContext): CliCommand {
  return new CliCommand('drain')
    .description('let nodes take no new sandboxes; existing sandboxes stay')
    .argument('<id...>', 'IDs of nodes')
    .option('--move', 'move running sandboxes to other nodes through the object store, and wait')
    .action((ids: readonly string[], { move = false }: { readonly move?: boolean }) =>
      move ? drainAndMove(context, ids) : setStatus(context, ids, 'draining'),
    )
}

export function resumeCommand(context: CliContext): CliCommand {
  return new CliCommand('resume')
    .description('let drained nodes take new sandboxes again')
    .argument('<id...>', 'IDs of nodes')
    .action((ids: readonly string[]) => setStatus(context, ids, 'ready'))
}

async function setStatus(
  context: CliContext,
  ids: readonly string[],
  status: 'ready' | 'draining',
): Promise<void> {
  const platform = await openNodes(context)
  await forEachId(ids, async (id) => {
    await platform.setNodeStatus(id, status)
    printLine(context.stdout, `${id} is ${status}`)
  })
}
