import { rename, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { randomHex } from '@atoll/kit/id'
import { syncFolder } from '@atoll/kit/atomic-file'
import { damagedObject } from '@atoll/objects/frames'
import type { Claims } from './claims.ts'
import type { Marks } from './marks.ts'
import type { Transfers } from './transfers.ts'

/**
 * Builds of envd in the object store. Saved memory needs the very files that it was saved with, also their times. Nodes
 * build envd on their own, so builds with the same name differ; a reference has the hash of the files too.
 */
export interface ObjectEnvds {
  /** Uploads a build by its name on this node. Returns the reference for `fetch`. */
  upload(name: string, signal: AbortSignal): Promise<string>
  /** Makes sure that this node has a build. Returns its name on this node. */
  fetch(reference: string): Promise<string>
  /** Whether the store has a build, and keeps it for days at least. */
  isStored(reference: string, signal: AbortSignal): Promise<boolean>
}

const referencePattern = /^([0-9a-f]{8,64})\.([0-9a-f]{64})$/

export function createObjectEnvds(ports: {
  readonly transfers: Transfers
  readonly marks: Marks
  readonly claims: Claims
  readonly dir: string
  /** Hashes the files of a folder, with their times. */
  hashFolder(dir: string): Promise<string>
}): ObjectEnvds {
  const { transfers, marks, claims, dir, hashFolder } = ports
  /** Builds never change. */
  const hashes = new Map<string, Promise<string>>()
  const underway = new Map<string, Promise<string>>()
  const hashOf = (name: string): Promise<string> => {
    const hash = hashes.get(name) ?? hashFolder(join(dir, name))
    hashes.set(name, hash)
    hash.catch(() => hashes.delete(name))
    return hash
  }
  const isThere = (name: string) =>
    stat(join(dir, name)).then(
      () => true,
      () => false,
    )

  async function fetchOne(reference: string): Promise<string> {
    const [, name, hash] = referencePattern.exec(reference) ?? []
    if (name === undefined || hash === undefined) throw damagedObject()
    if ((await isThere(name)) && (await hashOf(name)) === hash) return name
    const fetched = `${name}-${hash.slice(0, 12)}`
    if (await isThere(fetched)) return fetched
    const manifest = await transfers.find(pathOf(reference))
    const work = join(dir, `.tmp-${randomHex(6)}`)
    await transfers.download(manifest, 'files', work)
    if ((await hashFolder(work)) !== hash) throw damagedObject()
    await rename(work, join(dir, fetched))
    await syncFolder(dir)
    await marks.add('envd', reference)
    return fetched
  }

  return {
    async upload(name, signal) {
      // A build that came from another node keeps its name in the store.
      const reference = `${name.replace(/-[0-9a-f]{12}$/, '')}.${await hashOf(name)}`
      const isStored = await claims.claim(pathOf(reference), signal)
      if (isStored && marks.has('envd', reference)) return reference
      const folders = { files: join(dir, name) }
      await transfers.upload({ path: pathOf(reference), facts: {}, folders }, signal)
      await marks.add('envd', reference)
      return reference
    },
    fetch(reference) {
      const fetching = underway.get(reference) ?? fetchOne(reference)
      underway.set(reference, fetching)
      void fetching.catch(() => {}).finally(() => underway.delete(reference))
      return fetching
    },
    isStored: (reference, signal) => claims.claim(pathOf(reference), signal),
  }
}

function pathOf(reference: string): string {
  return `envd/${reference}`
}

/** Whether a bundle with this path is a build of envd. */
export function isEnvdPath(path: string): boolean {
  const reference = path.replace(/^envd\//, '')
  return path === pathOf(reference) && referencePattern.test(reference)
}
