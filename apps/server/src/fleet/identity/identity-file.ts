import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { roles } from '@atoll/contracts/fleet'
import { writeFileAtomic } from '@atoll/kit/atomic-file'
import { Fault } from '@atoll/kit/fault'
import { z } from 'zod'
import type { Identity } from './identity.ts'

const Stored = z.object({
  role: z.enum(roles),
  id: z.string(),
  certificate: z.string(),
  key: z.string(),
  authority: z.string(),
  /** host:port of the api that the part joined. */
  api: z.string(),
})

export interface StoredIdentity extends Identity {
  readonly api: string
}

function pathOf(dataDir: string): string {
  return join(dataDir, 'fleet-identity.json')
}

export async function saveIdentity(dataDir: string, identity: StoredIdentity): Promise<void> {
  await writeFileAtomic(pathOf(dataDir), `${JSON.stringify(identity, undefined, 2)}\n`, 0o600)
}

/** Returns undefined if the part has not joined a fleet. */
export async function readIdentity(dataDir: string): Promise<StoredIdentity | undefined> {
  const path = pathOf(dataDir)
  const text = await readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined
    throw error
  })
  if (text === undefined) return undefined
  try {
    return Stored.parse(JSON.parse(text))
  } catch (error) {
    const message = `${path} is damaged: remove the member from the fleet and join again`
    throw new Fault('invalid', 'fleet_identity', message, { cause: error })
  }
}
