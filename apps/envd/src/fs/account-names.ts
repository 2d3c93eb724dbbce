import { open } from 'node:fs/promises'
import { namesOfIds } from '../domain/account-names.ts'

export interface AccountNames {
  /** The id itself, as a text, when it has no name. */
  owner(uid: bigint): string
  group(gid: bigint): string
}

/** Looks once whether the files have changed; the names it gives stay as they are. */
export function accountNames(files: {
  readonly passwd: string
  readonly group: string
}): () => Promise<AccountNames> {
  const owners = cachedNames(files.passwd)
  const groups = cachedNames(files.group)
  return async () => {
    const [ofOwners, ofGroups] = await Promise.all([owners(), groups()])
    return {
      owner: (uid) => ofOwners.get(Number(uid)) ?? String(uid),
      group: (gid) => ofGroups.get(Number(gid)) ?? String(gid),
    }
  }
}

function cachedNames(path: string): () => Promise<ReadonlyMap<number, string>> {
  let version = ''
  let names: ReadonlyMap<number, string> = new Map()
  return async () => {
    await using file = await open(path, 'r').catch(() => undefined)
    if (file === undefined) return new Map()
    const { mtimeNs, ino, size } = await file.stat({ bigint: true })
    const found = `${ino}:${mtimeNs}:${size}`
    if (found === version) return names
    const buffer = Buffer.alloc(Math.min(Number(size), sizeLimitBytes))
    const { bytesRead } = await file.read(buffer, 0, buffer.length, 0)
    names = namesOfIds(buffer.toString('utf8', 0, bytesRead))
    version = found
    return names
  }
}

/** Whoever is root in the sandbox can make these files as large as the disk. */
const sizeLimitBytes = 4 * 1024 * 1024
