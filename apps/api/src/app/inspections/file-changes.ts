import { Fault } from '@atoll/kit/fault'
import type { ChangedFile, ChangePage } from '../../domain/file-changes.ts'
import type { Fleet } from '../nodes/fleet.ts'
import type { Sandboxes } from '../sandboxes/sandboxes.ts'

/** Files that a team's sandboxes changed. */
export interface FileChangeReader {
  list(sandbox: TeamSandbox, query: ListQuery, signal: AbortSignal): Promise<ChangeList>
  read(sandbox: TeamSandbox, path: string, signal: AbortSignal): Promise<ChangedFile>
}

export interface TeamSandbox {
  readonly teamId: string
  readonly sandboxId: string
}

export interface ChangeList extends Omit<ChangePage, 'next'> {
  readonly nextToken?: string
}

interface ListQuery {
  readonly path: string
  readonly limit: number
  readonly nextToken: string | undefined
}

export function createFileChanges({
  sandboxes,
  fleet,
}: {
  readonly sandboxes: Pick<Sandboxes, 'get'>
  readonly fleet: Pick<Fleet, 'member'>
}): FileChangeReader {
  return {
    async list({ teamId, sandboxId }, { path, limit, nextToken }, signal) {
      const { nodeId } = await sandboxes.get(teamId, sandboxId)
      const node = fleet.member(nodeId).changes
      const after = nextToken === undefined ? undefined : Buffer.from(nextToken, 'base64url')
      const query = { path: Buffer.from(path), after, limit }
      const { next, changes, isComplete } = await node.list(sandboxId, query, signal)
      const token = next && { nextToken: next.toString('base64url') }
      return { changes, ...token, isComplete }
    },

    async read({ teamId, sandboxId }, path, signal) {
      const { nodeId } = await sandboxes.get(teamId, sandboxId)
      const node = fleet.member(nodeId).changes
      const changed = await node.read(sandboxId, Buffer.from(path), signal)
      if (changed) return changed
      throw new Fault(
        'not_found',
        'file_not_changed',
        `The sandbox has not changed ${path}: the file does not exist, or is the same as in the template`,
      )
    },
  }
}
