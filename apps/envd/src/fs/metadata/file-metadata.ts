/** Stores file metadata in extended attributes if the file system supports them, else in a journal keyed by inode. */
import { access, realpath, stat } from 'node:fs/promises'
import { join } from 'node:path'
import type { MetadataStore } from '../../domain/files/metadata-store.ts'
import type { Libc } from '../../linux/libc.ts'
import { extendedAttributes } from './extended-attributes.ts'
import type { ExtendedAttributes } from './extended-attributes.ts'
import { openInodeMetadata } from './inode-metadata.ts'
import type { InodeMetadata, InodeMetadataOptions } from './inode-metadata.ts'

export interface FileMetadataStore extends MetadataStore {
  /** Loads the journal of an earlier envd process, if there is one. */
  resume(): Promise<void>
}

export function fileMetadata(
  options: InodeMetadataOptions & {
    readonly libc: () => Libc
    /** Default: detected per file system. */
    readonly withoutAttributes?: boolean | undefined
  },
): FileMetadataStore {
  const attributes = extendedAttributes(options.libc)
  const hasAttributes = options.withoutAttributes ? () => false : detectSupport(attributes)
  let inodeMetadata: InodeMetadata | undefined
  let opening: Promise<InodeMetadata> | undefined

  return {
    async resume() {
      const journal = join(options.folder, 'metadata.jsonl')
      const hasJournal = await access(journal).then(
        () => true,
        () => false,
      )
      if (hasJournal) await open()
    },
    read(path, identity) {
      const stored = inodeMetadata?.read(path.toString(), identity)
      if (stored) return stored
      return hasAttributes(path, identity.dev) ? attributes.read(path) : {}
    },
    async replace(path, metadata) {
      const real = await realpath(path).catch(ignoreMissing)
      const identity = real && (await stat(real, { bigint: true }).catch(ignoreMissing))
      if (!real || !identity) return
      const isEmpty = Object.keys(metadata).length === 0
      if (hasAttributes(real, identity.dev) && attributes.replace(real, metadata)) {
        inodeMetadata?.forget(identity)
      } else if (isEmpty) {
        inodeMetadata?.forget(identity)
      } else {
        const store = await open()
        store.put(real, identity, metadata)
      }
      await inodeMetadata?.flush()
    },
    handleMove: (from, to) => inodeMetadata?.handleMove(from, to),
    async close() {
      await (await opening)?.close()
    },
  }

  function open(): Promise<InodeMetadata> {
    opening ??= openInodeMetadata(options).then(
      (opened) => (inodeMetadata = opened),
      (cause: unknown) => {
        opening = undefined
        throw cause
      },
    )
    return opening
  }
}

/** Detects once per file system whether it supports extended attributes. */
function detectSupport(
  attributes: ExtendedAttributes,
): (path: string | Uint8Array, device: bigint) => boolean {
  const support = new Map<bigint, boolean>()
  return (path, device) => {
    const known = support.get(device)
    if (known !== undefined) return known
    const isSupported = attributes.areSupported(path)
    support.set(device, isSupported)
    return isSupported
  }
}

/** A file that was deleted right after the upload needs no metadata. */
function ignoreMissing(error: NodeJS.ErrnoException): undefined {
  if (error.code !== 'ENOENT') throw error
}
