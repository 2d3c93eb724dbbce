import { createHash } from 'node:crypto'
import { join } from 'node:path'

/**
 * One installation of Atoll on this machine. Everything it leaves on the host carries its tag, so several installations
 * can share a host and each removes only its own leftovers.
 */
export interface Installation {
  readonly tag: string
  readonly dataDir: string
  /** Folder on a file system that a reboot empties: everything named in it ends with a reboot too. */
  readonly runDir: string
  readonly cgroup: string
  readonly nftTable: string
  readonly linkPrefix: string
}

/** Name prefix of the nftables tables of all installations. */
export const tablePrefix = 'atoll_'

/** `dataDir` must be a real path: a folder with two paths would count as two installations. */
export function toInstallation(dataDir: string): Installation {
  const tag = createHash('sha256').update(dataDir).digest('hex').slice(0, 5)
  return {
    tag,
    dataDir,
    runDir: `/run/atoll/${tag}`,
    cgroup: `atoll-${tag}`,
    nftTable: `${tablePrefix}${tag}`,
    linkPrefix: `at${tag}-`, // interface names have at most 15 characters: five are left for the slot number
  }
}

export function cellsDir(installation: Installation): string {
  return join(installation.dataDir, 'cells')
}

export function cellDir(installation: Installation, cellId: string): string {
  return join(cellsDir(installation), cellId)
}

/** Folder for the memory of a paused cell. */
export function memoryDir(installation: Installation, cellId: string): string {
  return join(cellDir(installation, cellId), 'memory')
}

export function snapshotsDir(installation: Installation): string {
  return join(installation.dataDir, 'snapshots')
}

/** File with the current space level, read when the node's status is asked for. */
export function spaceLevelFile(installation: Installation): string {
  return join(installation.runDir, 'space-level')
}
