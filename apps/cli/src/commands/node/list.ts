import { Node } from '@atoll/contracts/nodes'
import type { ListedNode } from '@atoll/client/replies'
import { z } from 'zod'
import { printJson, printLine } from '../../context.ts'
import type { CliContext } from '../../context.ts'
import { CliCommand } from '../../declare/command.ts'
import { printTable } from '../../output/table.ts'
import { openNodes } from './open-nodes.ts'

export function listCommand(context: CliContext): CliCommand {
  return new CliCommand('list')
    .alias('ls')
    .description('list the nodes, with what they run and how busy they are')
    .json(z.array(Node))
    .action((options: { readonly json?: boolean }) => list(context, options))
}

async function list(context: CliContext, { json }: { readonly json?: boolean }) {
  const nodes = await (await openNodes(context)).listNodes()
  if (json) return printJson(context.stdout, nodes)
  if (nodes.length === 0) return printLine(context.stderr, 'No node has answered the server yet.')
  printTable(context.stdout, head, nodes.map(toRow))
}

const head = ['ID', 'STATUS', 'SANDBOXES', 'PAUSED', 'CPU', 'MEMORY', 'VERSION']

function toRow(node: ListedNode): readonly string[] {
  const { id, status, sandboxCount, sandboxPausedCount, metrics, version } = node
  const { cpuPercent, memoryUsedBytes, memoryTotalBytes } = metrics
  const memoryPercent = Math.round((100 * memoryUsedBytes) / Math.max(memoryTotalBytes, 1))
  return [
    ...[id, status, String(sandboxCount), String(sandboxPausedCount)],
    ...[`${cpuPercent} %`, `${memoryPercent} %`, version],
  ]
}
