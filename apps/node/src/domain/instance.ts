import { createHash } from 'node:crypto'
import { join } from 'node:path'

/**
 * One installation of Atoll on this machine. Everything it leaves on the host carries its tag, so that several
 * installations live side by side and each reclaims only its own.
 */
export interface Instance {
  readonly tag: string
  readonly dataDir: string
  /** On a file system that does not outlive a reboot, as nothing named in it does. */
  readonly runDir: string
  readonly cgroup: string
  readonly nftTable: string
  readonly linkPrefix: string
}

/** Begins the name of every installation's nftables table. */
export const tablePrefix = 'atoll_'

/** `dataDir` must be a real path: the same folder by two names would be two instances. */
export function toInstance(dataDir: string): Instance {
  const tag = createHash('sha256').update(dataDir).digest('hex').slice(0, 5)
  return {
    tag,
    dataDir,
    runDir: `/run/atoll/${tag}`,
    cgroup: `atoll-${tag}`,
    nftTable: `${tablePrefix}${tag}`,
    linkPrefix: `at${tag}-`, // an interface name has 15 characters: five are left for the number
  }
}

export function cellsDir(instance: Instance): string {
  return join(instance.dataDir, 'cells')
}

export function cellDir(instance: Instance, cellId: string): string {
  return join(cellsDir(instance), cellId)
}

/** What runtimes keep of a cell's memory while it is paused. */
export function memoryDir(instance: Instance, cellId: string): string {
  return join(cellDir(instance, cellId), 'memory')
}

/** Copies of sandboxes that are kept. */
export function snapshotsDir(instance: Instance): string {
  return join(instance.dataDir, 'snapshots')
}

/** How much disk space there is, in a word, for whoever asks after the node. */
export function spaceLevelFile(instance: Instance): string {
  return join(instance.runDir, 'space-level')
}
