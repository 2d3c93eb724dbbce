/** Metadata of files: in extended attributes where the file system has them, else beside the files. */
import { access, realpath, stat } from 'node:fs/promises'
import { join } from 'node:path'
import type { MetadataStore } from '../../domain/files/metadata-store.ts'
import type { Libc } from '../../linux/libc.ts'
import { extendedAttributes } from './extended-attributes.ts'
import { keptMetadata } from './kept-metadata.ts'
import type { KeptMetadata, KeptMetadataOptions } from './kept-metadata.ts'

export interface FileMetadataStore extends MetadataStore {
  /** Takes up what an earlier daemon kept, if anything. */
  resume(): Promise<void>
}

export function fileMetadata(
  options: KeptMetadataOptions & {
    readonly libc: () => Libc
    /** Default: whether the file system has extended attributes is found out. */
    readonly withoutAttributes?: boolean | undefined
  },
): FileMetadataStore {
  const attributes = extendedAttributes(options.libc)
  const support = new Map<bigint, boolean>()
  let kept: KeptMetadata | undefined
  let opening: Promise<KeptMetadata> | undefined

  return {
    async resume() {
      const journal = join(options.folder, 'metadata.jsonl')
      const isThere = await access(journal).then(
        () => true,
        () => false,
      )
      if (isThere) await open()
    },
    read(path, identity) {
      const beside = kept?.read(path.toString(), identity)
      if (beside) return beside
      return hasAttributes(path, identity.dev) ? attributes.read(path) : {}
    },
    async replace(path, metadata) {
      const real = await realpath(path).catch(absent)
      const identity = real && (await stat(real, { bigint: true }).catch(absent))
      if (!real || !identity) return
      const isEmpty = Object.keys(metadata).length === 0
      if (hasAttributes(real, identity.dev) && attributes.replace(real, metadata)) {
        kept?.forget(identity)
      } else if (isEmpty) {
        kept?.forget(identity)
      } else {
        const store = await open()
        store.put(real, identity, metadata)
      }
      await kept?.flush()
    },
    moved: (from, to) => kept?.moved(from, to),
    async close() {
      await (await opening)?.close()
    },
  }

  function hasAttributes(path: string | Uint8Array, device: bigint): boolean {
    if (options.withoutAttributes) return false
    const known = support.get(device)
    if (known !== undefined) return known
    const found = attributes.areKept(path)
    support.set(device, found)
    return found
  }

  function open(): Promise<KeptMetadata> {
    opening ??= keptMetadata(options).then(
      (opened) => (kept = opened),
      (cause: unknown) => {
        opening = undefined
        throw cause
      },
    )
    return opening
  }
}

/** Who removes a file that was just written wants no metadata for it either. */
function absent(error: NodeJS.ErrnoException): undefined {
  if (error.code !== 'ENOENT') throw error
}
