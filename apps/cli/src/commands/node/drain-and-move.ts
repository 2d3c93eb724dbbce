import { setTimeout as sleep } from 'node:timers/promises'
import type { PlatformClient } from '@atoll/client/platform'
import { Fault } from '@atoll/kit/fault'
import { printLine } from '../../context.ts'
import type { CliContext } from '../../context.ts'
import { forEachId } from '../each-id.ts'
import { openNodes } from './open-nodes.ts'

const pollMs = 1_000

type NodeMoves = Awaited<ReturnType<PlatformClient['getNodeMoves']>>

/** Waits until all running sandboxes have moved or have said why they cannot. Apis continue to move them when this program is interrupted. */
export async function drainAndMove(context: CliContext, ids: readonly string[]): Promise<void> {
  const platform = await openNodes(context)
  await forEachId(ids, async (id) => {
    await platform.setNodeStatus(id, 'draining', { moveSandboxes: true })
    printLine(context.stdout, `${id} is draining`)
  })
  await forEachId(ids, async (id) => {
    const left = await waitForMoves(context, platform, id)
    if (left.notUploaded > 0) {
      const text = `${left.notUploaded} paused sandboxes are not in the object store yet`
      printLine(context.stdout, `${id}: ${text}`)
    }
    if (left.staying > 0) throw cannotMove(id, left)
  })
}

async function waitForMoves(
  { stdout }: CliContext,
  platform: PlatformClient,
  id: string,
): Promise<NodeMoves> {
  let shown = ''
  for (;;) {
    const moves = await platform.getNodeMoves(id)
    const { running, moving, paused, staying } = moves
    const line = `${id}: ${running} running, ${moving} moving, ${paused} paused`
    if (line !== shown) printLine(stdout, line)
    shown = line
    if (!moves.moveSandboxes) throw stopped(id)
    if (moving === 0 && running <= staying) return moves
    await sleep(pollMs)
  }
}

function cannotMove(id: string, { staying, problems }: NodeMoves): Fault {
  const list = problems.map(({ sandboxID, problem }) => `${sandboxID}: ${problem}`)
  if (staying > list.length) list.push(`${staying - list.length} others are not listed`)
  const message = `${staying} sandboxes stay on node ${id}, and are tried again after a minute or more. ${list.join('. ')}`
  return new Fault('conflict', 'sandboxes_stay', message)
}

function stopped(id: string): Fault {
  const message = `Node ${id} moves no sandboxes any more: its status was changed meanwhile`
  return new Fault('conflict', 'node_status', message)
}
