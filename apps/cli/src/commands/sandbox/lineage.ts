import type * as replies from '@atoll/client/replies'
import { SandboxLineage } from '@atoll/contracts/sandboxes/lineage'
import { openPlatform, printJson, printLine } from '../../context.ts'
import type { CliContext } from '../../context.ts'
import { CliCommand } from '../../declare/command.ts'
import { visibleName } from '../../output/visible-text.ts'

export function lineageCommand(context: CliContext): CliCommand {
  return new CliCommand('lineage')
    .description('show the sandboxes that a sandbox was copied from, their forks and snapshots')
    .argument('<id>', 'sandbox ID; it may have ended')
    .json(SandboxLineage, 'print as JSON')
    .action((id: string, options: { readonly json?: boolean }) => lineage(context, id, options))
}

async function lineage(
  context: CliContext,
  id: string,
  { json }: { readonly json?: boolean },
): Promise<void> {
  const { stdout, stderr } = context
  const { platform } = await openPlatform(context)
  const family = await platform.readLineage(id)
  if (json) return printJson(stdout, family)
  const known = new Set(family.sandboxes.map(({ sandboxID }) => sandboxID))
  const roots = family.sandboxes.filter(({ parent }) => !known.has(parent?.sandboxID ?? ''))
  for (const root of roots) {
    if (root.parent) printLine(stdout, `${root.parent.sandboxID}  ended, no longer recorded`)
    printBranch(root, root.parent ? 1 : 0)
  }
  if (!family.isComplete) printLine(stderr, 'The family is too large: a part is left out.')

  function printBranch(sandbox: replies.LineageSandbox, depth: number): void {
    const indent = '  '.repeat(depth)
    const mark = sandbox.sandboxID === id ? ' *' : ''
    printLine(stdout, `${indent}${describe(sandbox)}${mark}`)
    for (const { snapshotID, sandboxID, createdAt } of family.snapshots) {
      if (sandboxID !== sandbox.sandboxID) continue
      printLine(stdout, `${indent}  snapshot ${visibleName(snapshotID)}  ${createdAt}`)
    }
    for (const child of family.sandboxes) {
      if (child.parent?.sandboxID === sandbox.sandboxID) printBranch(child, depth + 1)
    }
  }
}

function describe(sandbox: replies.LineageSandbox): string {
  const { sandboxID, parent, state, endReason, alias, templateID, createdAt } = sandbox
  const origin = parent
    ? { fork: 'fork', snapshot: 'from snapshot' }[parent.kind]
    : `from ${visibleName(alias ?? templateID)}`
  const end = state === 'ended' && endReason !== undefined ? `: ${visibleName(endReason)}` : ''
  return `${sandboxID}  ${origin}  ${state}${end}  ${createdAt}`
}
