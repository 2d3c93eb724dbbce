import { ChangeKind, EntryType } from '@atoll/contracts/gen/atoll/node/v1/node_pb'
import type { NodeService } from '@atoll/contracts/gen/atoll/node/v1/node_pb'
import type { ServiceImpl } from '@connectrpc/connect'
import type { Changes } from '../app/changes/changes.ts'
import { checkId } from '../domain/sandboxes/cell.ts'
import type {
  ChangeKind as Kind,
  EntryType as Type,
  FileSide,
} from '../domain/sandboxes/changes.ts'

export function changeMethods(
  changes: Changes,
): Pick<ServiceImpl<typeof NodeService>, 'listChanges' | 'readChange'> {
  return {
    async listChanges({ sandboxId, path, after, limit }, { signal }) {
      checkId(sandboxId)
      const from = after.length > 0 ? { after: Buffer.from(after) } : {}
      const query = { path: Buffer.from(path), ...from, limit }
      const page = await changes.list(sandboxId, query, signal)
      return {
        changes: page.changes.map(({ kind, type, sizeBytes, modifiedAtMs, ...change }) => ({
          ...change,
          kind: kinds[kind],
          type: types[type],
          sizeBytes: BigInt(sizeBytes),
          modifiedAtMs: BigInt(modifiedAtMs),
        })),
        isComplete: page.isComplete,
        ...(page.next && { next: page.next }),
      }
    },

    async readChange({ sandboxId, path }, { signal }) {
      checkId(sandboxId)
      const { before, after } = (await changes.read(sandboxId, Buffer.from(path), signal)) ?? {}
      return { ...(before && { before: toSide(before) }), ...(after && { after: toSide(after) }) }
    },
  }
}

function toSide({ type, sizeBytes, ...side }: FileSide) {
  return { ...side, type: types[type], sizeBytes: BigInt(sizeBytes) }
}

const kinds = {
  added: ChangeKind.ADDED,
  modified: ChangeKind.MODIFIED,
  deleted: ChangeKind.DELETED,
} as const satisfies Record<Kind, ChangeKind>

const types = {
  file: EntryType.FILE,
  directory: EntryType.DIRECTORY,
  symlink: EntryType.SYMLINK,
  other: EntryType.OTHER,
} as const satisfies Record<Type, EntryType>
