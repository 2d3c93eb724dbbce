import { ChangeKind, EntryType, NodeService } from '@atoll/contracts/gen/atoll/node/v1/node_pb'
import type { FileChange, FileSide } from '@atoll/contracts/gen/atoll/node/v1/node_pb'
import { createClient } from '@connectrpc/connect'
import type { Transport } from '@connectrpc/connect'
import type { ChangeNode } from '../domain/file-changes.ts'
import { toInspectionFault } from './node-faults.ts'

/** Client for the changed files of sandboxes on the node. */
export function connectChanges(transport: Transport): ChangeNode {
  const client = createClient(NodeService, transport)
  return {
    async list(sandboxId, { path, after, limit }, signal) {
      const request = { sandboxId, path, limit, ...(after && { after }) }
      try {
        const { changes, next, isComplete } = await client.listChanges(request, { signal })
        return {
          changes: changes.map(toChange),
          next: next.length > 0 ? Buffer.from(next) : undefined,
          isComplete,
        }
      } catch (error) {
        throw toInspectionFault(error, sandboxId)
      }
    },

    async read(sandboxId, path, signal) {
      try {
        const { before, after } = await client.readChange({ sandboxId, path }, { signal })
        if (!before && !after) return undefined
        return {
          path: path.toString(),
          ...(before && { before: toSide(before) }),
          ...(after && { after: toSide(after) }),
        }
      } catch (error) {
        throw toInspectionFault(error, sandboxId)
      }
    },
  }
}

function toChange({ path, kind, type, sizeBytes, mode, modifiedAtMs }: FileChange) {
  return {
    path: Buffer.from(path).toString(),
    kind: kinds[kind],
    type: types[type],
    sizeBytes: Number(sizeBytes),
    mode,
    modifiedAt: new Date(Number(modifiedAtMs)).toISOString(),
  }
}

function toSide({ type, sizeBytes, mode, content, isTruncated }: FileSide) {
  const text = toText(content, isTruncated)
  const side = { type: types[type], sizeBytes: Number(sizeBytes), mode, isTruncated }
  return text === undefined ? side : { ...side, content: text }
}

/** Returns undefined for content that is not text. */
function toText(bytes: Uint8Array, isTruncated: boolean): string | undefined {
  if (bytes.includes(0)) return undefined
  try {
    // The end of truncated content may be in the middle of a character.
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes, {
      stream: isTruncated,
    })
  } catch {
    return undefined
  }
}

const kinds = {
  [ChangeKind.UNSPECIFIED]: 'modified',
  [ChangeKind.ADDED]: 'added',
  [ChangeKind.MODIFIED]: 'modified',
  [ChangeKind.DELETED]: 'deleted',
} as const satisfies Record<ChangeKind, string>

const types = {
  [EntryType.UNSPECIFIED]: 'other',
  [EntryType.FILE]: 'file',
  [EntryType.DIRECTORY]: 'directory',
  [EntryType.SYMLINK]: 'symlink',
  [EntryType.OTHER]: 'other',
} as const satisfies Record<EntryType, string>
