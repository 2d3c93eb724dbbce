import { NodeDetail } from '@atoll/contracts/nodes'
import type { NodeInfo } from '@atoll/client/replies'
import { printJson } from '../../context.ts'
import type { CliContext } from '../../context.ts'
import { CliCommand } from '../../declare/command.ts'
import { formatRelative, formatSize, printTable } from '../../output/table.ts'
import { openNodes } from './open-nodes.ts'

export function showCommand(context: CliContext): CliCommand {
  return new CliCommand('show')
    .description('show a node: capacity, load, disks and warm pools')
    .argument('<id>', 'ID of the node')
    .json(NodeDetail)
    .action((id: string, options: { readonly json?: boolean }) => show(context, id, options))
}

async function show(context: CliContext, id: string, { json }: { readonly json?: boolean }) {
  const node = await (await openNodes(context)).getNode(id)
  if (json) return printJson(context.stdout, node)
  printTable(context.stdout, ['NODE', node.id], toRows(node, new Date()))
}

function toRows(node: NodeInfo, now: Date): string[][] {
  const { metrics, machineInfo, pools } = node
  const { cpuPercent, cpuCount, allocatedCPU } = metrics
  const { memoryUsedBytes, memoryTotalBytes, allocatedMemoryBytes } = metrics
  return [
    ['status', `${node.status} since ${formatRelative(node.statusChangedAt, now)}`],
    ['version', node.version],
    ['machine', `${machineInfo.cpuModelName}, ${machineInfo.cpuArchitecture}`],
    ['sandboxes', `${node.sandboxCount} running, ${node.sandboxPausedCount} paused`],
    ['creates', `${node.createSuccesses} succeeded, ${node.createFails} failed`],
    ['CPU', `${cpuPercent} % of ${cpuCount}, ${allocatedCPU} allocated`],
    [
      'memory',
      `${formatSize(memoryUsedBytes)} of ${formatSize(memoryTotalBytes)}, ${formatSize(allocatedMemoryBytes)} allocated`,
    ],
    ...metrics.disks.map(({ mountPoint, usedBytes, totalBytes }) => [
      ...['disk', `${mountPoint}: ${formatSize(usedBytes)} of ${formatSize(totalBytes)}`],
    ]),
    ...pools.map(({ templateID, ready, target }) => [
      ...['warm pool', `${templateID}: ${ready} of ${target} ready`],
    ]),
    ...node.snapshotPools.map(({ snapshotID, ready, target }) => [
      ...['warm pool', `snapshot ${snapshotID}: ${ready} of ${target} ready`],
    ]),
  ]
}
