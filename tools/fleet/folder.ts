/**
 * Folder of a rig. It names the process that owns it, so that the next rig can remove what a killed one left: sandboxes,
 * namespaces, the bridge and the folder.
 */
import { randomBytes } from 'node:crypto'
import { globSync } from 'node:fs'
import { mkdir, rm } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { run } from '@atoll/kit/run'
import { listNamespaces, removeNetwork } from './network.ts'
import { isOwned, noteOwner } from './owner.ts'
import { main } from './part.ts'

export interface RigFolder {
  /** Five hexadecimal digits. */
  readonly id: string
  readonly path: string
}

const prefix = '/var/tmp/atoll-rig-'
const downLimitMs = 300_000

/** Addresses of sandboxes. All nodes have the same: each has a network of its own. */
const sandboxSubnet = '10.213.0.0/20'
const layersDir = '/var/lib/atoll/layers'

/** The last two digits of the ID choose the network, so no two rigs may share them. */
export async function createFolder(): Promise<RigFolder> {
  const taken = new Set(listRigs().map(({ id }) => id.slice(-2)))
  for (;;) {
    const id = randomBytes(3).toString('hex').slice(1)
    if (taken.has(id.slice(-2))) continue
    const path = `${prefix}${id}`
    await mkdir(path, { mode: 0o755 })
    await noteOwner(path)
    return { id, path }
  }
}

/** Removes rigs whose processes have ended. Returns their IDs. */
export async function removeAbandoned(report: (id: string) => void = () => {}): Promise<void> {
  for (const folder of listRigs()) {
    if (await isOwned(folder.path)) continue
    report(folder.id)
    await removeRig(folder)
  }
}

/** Ends all sandboxes and removes everything that the rig has on this machine. Its parts must have ended. */
export async function removeRig({ id, path }: RigFolder): Promise<void> {
  const namespaces = await listNamespaces(id)
  for (const dataDir of globSync(join(path, 'node-*'))) {
    const namespace = namespaces.find((name) => name.endsWith(`-${basename(dataDir)}`))
    const enter = namespace === undefined ? [] : ['nsenter', `--net=/run/netns/${namespace}`]
    const env = { ...process.env, ...nodeSettings(dataDir) }
    const command = [...enter, process.execPath, main, 'down']
    await run('env', command, { env, timeoutMs: downLimitMs })
  }
  await removeNetwork(id)
  await rm(path, { recursive: true, force: true })
}

/** Settings of a node that its removal needs too. */
export function nodeSettings(dataDir: string): Record<string, string> {
  return { ATOLL_DATA_DIR: dataDir, ATOLL_SUBNET: sandboxSubnet, ATOLL_LAYERS_DIR: layersDir }
}

function listRigs(): RigFolder[] {
  return globSync(`${prefix}*`).flatMap((path) => {
    const id = path.slice(prefix.length)
    return /^[0-9a-f]{5}$/.test(id) ? [{ id, path }] : []
  })
}
