/**
 * Links that show one sandbox to people without an account, read-only and for a limited time. The server keeps the
 * hash of a link's token, and the API key of its maker encrypted under that token. So a link ends with its key, and the
 * file alone opens nothing.
 */
import { randomBytes, randomUUID } from 'node:crypto'
import type { Clock } from '@atoll/kit/clock'
import { Fault } from '@atoll/kit/fault'
import { hashOf, seal, unseal } from '../sealed.ts'
import type { ShareFile, StoredShare } from './share-file.ts'

export const maxShareSeconds = 7 * 24 * 60 * 60
const maxPerSandbox = 20
/** One team cannot take the links of all others. */
const maxPerTeam = 500
const maxShares = 10_000

export type ShareInfo = Pick<StoredShare, 'id' | 'sandboxId' | 'createdAt' | 'expiresAt'>

export interface SharedAccess {
  readonly id: string
  readonly sandboxId: string
  readonly apiKey: string
  readonly expiresAt: number
}

export interface Shares {
  /** Returns the token, which is not stored. */
  create(share: NewShare): Promise<ShareInfo & { readonly token: string }>
  find(token: string): SharedAccess | undefined
  list(teamId: string, sandboxId: string): ShareInfo[]
  /** Returns false if the team has no such link. */
  revoke(teamId: string, id: string): Promise<boolean>
}

export interface NewShare {
  readonly teamId: string
  readonly sandboxId: string
  readonly apiKey: string
  readonly seconds: number
}

export async function openShares(file: ShareFile, clock: Clock): Promise<Shares> {
  const shares = new Map((await file.read()).map((share) => [share.hash, share]))
  const isLive = ({ expiresAt }: StoredShare) => expiresAt > clock.now().getTime()
  const live = () => [...shares.values()].filter(isLive)
  const save = async () => {
    for (const [hash, share] of shares) if (!isLive(share)) shares.delete(hash)
    await file.write([...shares.values()])
  }
  const list: Shares['list'] = (teamId, sandboxId) =>
    live()
      .filter((share) => share.teamId === teamId && share.sandboxId === sandboxId)
      .map(toInfo)
  return {
    list,
    async create({ teamId, sandboxId, apiKey, seconds }) {
      requireRoom(live(), { teamId, sandboxId })
      const token = randomBytes(32).toString('base64url')
      const createdAt = clock.now().getTime()
      const share: StoredShare = {
        ...{ id: randomUUID(), hash: hashOf(token), sealedKey: seal(apiKey, token) },
        ...{ teamId, sandboxId, createdAt, expiresAt: createdAt + seconds * 1_000 },
      }
      shares.set(share.hash, share)
      await save().catch((error: unknown) => {
        shares.delete(share.hash)
        throw error
      })
      return { ...toInfo(share), token }
    },
    find(token) {
      const share = shares.get(hashOf(token))
      if (!share || !isLive(share)) return undefined
      const apiKey = unseal(share.sealedKey, token)
      return apiKey === undefined ? undefined : { ...toInfo(share), apiKey }
    },
    async revoke(teamId, id) {
      const share = live().find((each) => each.id === id && each.teamId === teamId)
      if (!share) return false
      // The link ends at once, even if the file cannot be written.
      shares.delete(share.hash)
      await save()
      return true
    },
  }
}

function requireRoom(
  shares: readonly StoredShare[],
  { teamId, sandboxId }: Pick<StoredShare, 'teamId' | 'sandboxId'>,
): void {
  const ofTeam = shares.filter((share) => share.teamId === teamId)
  const ofSandbox = ofTeam.filter((share) => share.sandboxId === sandboxId)
  const refuse = (count: number, holder: string) => {
    const message = `There are ${count} links ${holder} already. Revoke one first.`
    throw new Fault('exhausted', 'share_links', message)
  }
  if (ofSandbox.length >= maxPerSandbox) refuse(maxPerSandbox, 'to this sandbox')
  if (ofTeam.length >= maxPerTeam) refuse(maxPerTeam, 'of this team')
  if (shares.length >= maxShares) refuse(maxShares, 'on this server')
}

function toInfo({ id, sandboxId, createdAt, expiresAt }: StoredShare): ShareInfo {
  return { id, sandboxId, createdAt, expiresAt }
}
