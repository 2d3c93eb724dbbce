import { setTimeout as sleep } from 'node:timers/promises'
import type { PlatformClient } from '@atoll/client/platform'
import { printLine } from '../../context.ts'
import type { CliContext } from '../../context.ts'
import { CliCommand } from '../../declare/command.ts'
import { openNodes } from './open-nodes.ts'

const pollMs = 1_000

type ForgottenNode = Awaited<ReturnType<PlatformClient['forgetNode']>>

export function removeCommand(context: CliContext): CliCommand {
  return new CliCommand('remove')
    .description('remove a member from the fleet: its certificate is refused from now on')
    .argument('<id>', 'ID of a node or an edge')
    .action((id: string) => remove(context, id))
}

export function removeNodeCommand(context: CliContext): CliCommand {
  return removeCommand(context)
    .option('--forget', 'the node never comes back: end the sandboxes that only it had')
    .details(
      'Without --forget, the sandboxes of the node keep their records. With --forget, paused sandboxes in the object store resume on other nodes. All others end, and so do snapshots and built templates that only the node had. This cannot be undone: the node can never join again. It is refused while the node may still work. If the command is interrupted, run it again.',
    )
    .action((id: string, { forget = false }: { readonly forget?: boolean }) =>
      forget ? forgetNode(context, id) : remove(context, id),
    )
}

async function remove(context: CliContext, id: string): Promise<void> {
  await (await openNodes(context)).removeFleetMember(id)
  printLine(context.stdout, `${id} is removed`)
}

async function forgetNode(context: CliContext, id: string): Promise<void> {
  const platform = await openNodes(context)
  let sum = await platform.forgetNode(id)
  printLine(context.stdout, `${id} is removed for good`)
  while (!sum.isDone) {
    await sleep(pollMs)
    sum = add(sum, await platform.forgetNode(id))
  }
  printLine(
    context.stdout,
    `sandboxes ended: ${sum.endedRunning} running, ${sum.endedPaused} paused and not in the object store, ${sum.finishedKills} being killed`,
  )
  printLine(context.stdout, `sandboxes kept: ${sum.keptPaused} paused, which resume on other nodes`)
  printLine(
    context.stdout,
    `files lost: ${sum.lostSnapshots} snapshots, ${sum.lostTemplates} builds of templates`,
  )
}

function add(before: ForgottenNode, { isDone, keptPaused, ...next }: ForgottenNode): ForgottenNode {
  return {
    ...{ isDone, keptPaused },
    endedRunning: before.endedRunning + next.endedRunning,
    endedPaused: before.endedPaused + next.endedPaused,
    finishedKills: before.finishedKills + next.finishedKills,
    lostSnapshots: before.lostSnapshots + next.lostSnapshots,
    lostTemplates: before.lostTemplates + next.lostTemplates,
  }
}
