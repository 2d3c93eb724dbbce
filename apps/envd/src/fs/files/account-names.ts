import { parseNamesById } from '../../domain/access/names-by-id.ts'
import { cachedFile } from '../../linux/cached-file.ts'

export interface AccountNames {
  /** Returns the ID as text if it has no name. */
  owner(uid: bigint): string
  group(gid: bigint): string
}

/**
 * Returns a function that checks once whether the files changed, and then resolves any number of names from that
 * state.
 */
export function accountNames(files: {
  readonly passwd: string
  readonly group: string
}): () => AccountNames {
  const owners = cachedFile(files.passwd, parseNamesById)
  const groups = cachedFile(files.group, parseNamesById)
  return () => {
    const [ofOwners, ofGroups] = [owners(), groups()]
    return {
      owner: (uid) => ofOwners.get(Number(uid)) ?? String(uid),
      group: (gid) => ofGroups.get(Number(gid)) ?? String(gid),
    }
  }
}
