import { randomUUID } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { writeFileAtomic } from '@atoll/kit/atomic-file'
import { z } from 'zod'

/** Identity of the node whose data is in this directory. */
export interface NodeIdentity {
  /** UUID that stays with the data. */
  readonly nodeId: string
  /** Number of starts of the agent on this data. */
  readonly epoch: number
}

const Stored = z.object({ nodeId: z.uuid(), epoch: z.int().nonnegative() })

/**
 * Begins the next epoch and returns it, with the ID of the node. The control plane accepts only the newest epoch of a
 * node, so a copy or an old backup of the data cannot speak for the node. On disk before the agent answers any call.
 */
export async function startEpoch(dataDir: string): Promise<NodeIdentity> {
  const path = join(dataDir, 'node.json')
  const last = (await readIdentity(path)) ?? { nodeId: randomUUID(), epoch: 0 }
  const current = { ...last, epoch: last.epoch + 1 }
  await writeFileAtomic(path, `${JSON.stringify(current)}\n`)
  return current
}

/** Returns the ID of the node whose data is in this directory. A directory without one gets it now, before the first start. */
export async function ensureNodeId(dataDir: string): Promise<string> {
  const path = join(dataDir, 'node.json')
  const known = await readIdentity(path)
  if (known) return known.nodeId
  const first = { nodeId: randomUUID(), epoch: 0 }
  await writeFileAtomic(path, `${JSON.stringify(first)}\n`)
  return first.nodeId
}

async function readIdentity(path: string): Promise<NodeIdentity | undefined> {
  const text = await readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined
    throw error
  })
  if (text === undefined) return undefined
  try {
    return Stored.parse(JSON.parse(text))
  } catch (error) {
    // A new ID would orphan all sandboxes of this node.
    throw new Error(
      `${path} cannot be read: restore it from a backup. The table "nodes" of the store has the ID and the last epoch of each node`,
      { cause: error },
    )
  }
}
