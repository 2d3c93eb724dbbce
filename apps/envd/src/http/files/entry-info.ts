import type { MessageInitShape } from '@bufbuild/protobuf'
import { FileType } from '@atoll/contracts/gen/filesystem/filesystem_pb'
import type { EntryInfoSchema } from '@atoll/contracts/gen/filesystem/filesystem_pb'
import type { HandlerContext } from '@connectrpc/connect'
import type { Entry } from '../../domain/files/entry.ts'

export type EntryInfoInit = MessageInitShape<typeof EntryInfoSchema>

/** Returns the response format for this client. Early Python clients fail on unknown fields. */
export function entryView(context: HandlerContext): (entry: Entry) => EntryInfoInit {
  if (context.requestHeader.get('user-agent') !== 'connect-python') return toEntryInfo
  context.responseHeader.set('x-e2b-legacy-sdk', 'true')
  return ({ name, kind, path }) => ({ name, type: fileType[kind], path })
}

export function toEntryInfo(entry: Entry): EntryInfoInit {
  const { name, path, size, mode, permissions, owner, group, metadata, target } = entry
  return {
    name,
    type: fileType[entry.kind],
    path,
    size,
    mode,
    permissions,
    owner,
    group,
    modifiedTime: toTimestamp(entry.modifiedNs),
    ...(target !== undefined && { symlinkTarget: target }),
    metadata: { ...metadata },
  }
}

const fileType = {
  file: FileType.FILE,
  folder: FileType.DIRECTORY,
  other: FileType.UNSPECIFIED,
} as const satisfies Record<Entry['kind'], FileType>

/**
 * Handles times before 1970, where nanoseconds still count forward, and clamps to the range of the Timestamp
 * message.
 */
function toTimestamp(ns: bigint) {
  const nanos = Number(((ns % second) + second) % second)
  const seconds = (ns - BigInt(nanos)) / second
  if (seconds < earliest) return { seconds: earliest, nanos: 0 }
  return seconds > latest ? { seconds: latest, nanos: 0 } : { seconds, nanos }
}

const second = 1_000_000_000n
const earliest = -62_135_596_800n
const latest = 253_402_300_799n
