import type { LineageStore, Relative } from '../../domain/sandboxes/lineage.ts'
import { absent } from '../../domain/sandboxes/sandbox.ts'
import type { ListedSnapshot, SnapshotStore } from '../../domain/snapshot.ts'
import type { TeamSandbox } from './file-changes.ts'

/** Returns the family of a team's sandbox, which may have ended. */
export type ReadLineage = (sandbox: TeamSandbox) => Promise<Lineage>

export interface Lineage {
  /** Oldest first. */
  readonly sandboxes: readonly Relative[]
  /** Newest first. */
  readonly snapshots: readonly ListedSnapshot[]
  readonly isComplete: boolean
}

const maxAncestors = 32
const maxSandboxes = 200
const maxSnapshots = 100

export function createReadLineage({
  lineage,
  snapshots,
}: {
  readonly lineage: LineageStore
  readonly snapshots: Pick<SnapshotStore, 'list'>
}): ReadLineage {
  return async ({ teamId, sandboxId }) => {
    const self = await lineage.find(teamId, sandboxId)
    if (!self || self.state === 'creating') throw absent(sandboxId)
    const line = await climb(lineage, self)
    const known = new Map(line.sandboxes.map((each) => [each.id, each]))
    let isComplete = line.isComplete
    // The line down to the sandbox is known already, so a limit can only cut off other branches.
    for (let level = [...known.keys()]; level.length > 0;) {
      const children = await lineage.childrenOf(teamId, level, maxSandboxes + 1)
      const added = children.filter(({ id, state }) => !known.has(id) && state !== 'creating')
      const room = maxSandboxes - known.size
      for (const child of added.slice(0, room)) known.set(child.id, child)
      if (added.length > room || children.length > maxSandboxes) isComplete = false
      level = added.slice(0, room).map(({ id }) => id)
    }
    const sandboxIds = [...known.keys()]
    const made = await snapshots.list(
      { teamId, sandboxIds },
      { limit: maxSnapshots + 1, after: undefined },
    )
    return {
      sandboxes: [...known.values()].toSorted(byAge),
      snapshots: made.slice(0, maxSnapshots),
      isComplete: isComplete && made.length <= maxSnapshots,
    }
  }
}

/** Returns the sandbox and its ancestors. */
async function climb(lineage: LineageStore, self: Relative) {
  const sandboxes = [self]
  let parent = self.parent
  while (parent && sandboxes.length < maxAncestors) {
    const found = await lineage.find(self.teamId, parent.id)
    if (!found) break
    sandboxes.push(found)
    parent = found.parent
  }
  return { sandboxes, isComplete: sandboxes.length < maxAncestors }
}

function byAge(a: Relative, b: Relative): number {
  return a.createdAt.getTime() - b.createdAt.getTime() || (a.id < b.id ? -1 : 1)
}
