import type { BuildFile, BuildFiles } from '../build-files.ts'
import type { ObjectBuildFiles } from './object-build-files.ts'

/** Files for build steps of this node, and files that other nodes have uploaded. */
export interface SharedBuildFiles extends BuildFiles {
  /** Files to upload, and files whose last use the object store does not know. */
  findWork(): Promise<{ readonly uploads: BuildFile[]; readonly uses: BuildFile[] }>
}

/** A client waits for the answer, and sends the files again if it is no. */
const claimLimitMs = 3_000

export function shareBuildFiles(
  local: BuildFiles,
  stored: Pick<ObjectBuildFiles, 'claim' | 'fetch' | 'isUploaded' | 'keepNotesOf'>,
  onError: (error: unknown) => void,
): SharedBuildFiles {
  const underway = new Map<string, Promise<void>>()

  /** Builds that need the same files share one download. It continues when a build is canceled: the next one needs it. */
  function fetch(ownerId: string, hash: string): Promise<void> {
    const key = `${ownerId}-${hash}`
    const fetching =
      underway.get(key) ??
      stored
        .fetch({ ownerId, hash }, (path) => local.adopt(ownerId, hash, path))
        .finally(() => underway.delete(key))
    underway.set(key, fetching)
    return fetching
  }

  return {
    ...local,

    async find(ownerId, hash) {
      const here = await local.find(ownerId, hash)
      if (here !== undefined) return here
      await fetch(ownerId, hash)
      return local.find(ownerId, hash)
    },

    async has(ownerId, hash) {
      if (await local.has(ownerId, hash)) return true
      try {
        return await stored.claim({ ownerId, hash }, AbortSignal.timeout(claimLimitMs))
      } catch (error) {
        onError(error)
        return false
      }
    },

    async findWork() {
      const files = await local.list()
      await stored.keepNotesOf(files)
      const { uploads = [], uses = [] } = Object.groupBy(files, (file) =>
        stored.isUploaded(file) ? 'uses' : 'uploads',
      )
      return { uploads, uses }
    },
  }
}
