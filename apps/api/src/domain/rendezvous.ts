import { createHash } from 'node:crypto'

/**
 * Chooses one of these IDs for a key, the same in every process (rendezvous hashing): when an ID is added or removed, only
 * the keys that move to or from it change their ID.
 */
export function chooseFor(key: string, ids: readonly string[]): string | undefined {
  let chosen: { readonly id: string; readonly weight: string } | undefined
  for (const id of ids) {
    const weight = createHash('sha256').update(`${key} ${id}`).digest('hex')
    if (!chosen || weight > chosen.weight) chosen = { id, weight }
  }
  return chosen?.id
}
