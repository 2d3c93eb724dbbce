import type { Clock } from '@atoll/kit/clock'
import { Fault } from '@atoll/kit/fault'
import { fromToken, toToken } from '../../domain/paging.ts'
import { absentSecret, maxSecrets, newSecretId } from '../../domain/secret.ts'
import type { Secret, SecretStore } from '../../domain/secret.ts'

export interface Secrets {
  create(teamId: string, wanted: SecretUpdate & { readonly name: string }): Promise<Secret>
  get(teamId: string, idOrName: string): Promise<Secret>
  list(
    teamId: string,
    page: { readonly limit: number; readonly nextToken: string | undefined },
  ): Promise<{ readonly secrets: readonly Secret[]; readonly nextToken?: string }>
  /** Returns once the new value is in force in the team's running sandboxes; node failures are logged and retried. */
  update(teamId: string, idOrName: string, changes: SecretUpdate): Promise<Secret>
  /** Returns once the secret is gone from the team's running sandboxes; node failures are logged and retried. */
  delete(teamId: string, idOrName: string): Promise<void>
}

interface SecretUpdate {
  readonly value: string
  readonly metadata: Secret['metadata'] | undefined
}

export function createSecrets(ports: {
  readonly store: SecretStore
  /** Updates the nodes of all running sandboxes whose rules name this secret. */
  readonly onChanged: (teamId: string, name: string) => Promise<void>
  readonly clock: Clock
}): Secrets {
  const { store, onChanged, clock } = ports
  return {
    async create(teamId, { name, value, metadata = {} }) {
      const now = clock.now()
      const id = newSecretId()
      const secret = { id, teamId, name, version: 1, metadata, createdAt: now, updatedAt: now }
      const outcome = await store.insert(secret, value, maxSecrets)
      if (outcome === 'taken') throw nameTaken(name)
      if (outcome === 'full') throw tooManySecrets()
      // Rules of running sandboxes may name a deleted secret of the same name.
      await onChanged(teamId, name)
      return secret
    },

    async get(teamId, idOrName) {
      const found = await store.find(teamId, idOrName.toLowerCase())
      if (found) return found
      throw absentSecret()
    },

    async list(teamId, { limit, nextToken }) {
      const after = nextToken === undefined ? undefined : fromToken(nextToken, 'desc')
      const found = await store.list(teamId, { limit: limit + 1, after })
      const secrets = found.slice(0, limit)
      const last = secrets.at(-1)
      if (found.length <= limit || !last) return { secrets }
      const position = { startedAt: last.createdAt, id: tokenId(last) }
      return { secrets, nextToken: toToken(position, 'desc') }
    },

    async update(teamId, idOrName, changes) {
      const changed = await store.replace(teamId, idOrName.toLowerCase(), changes, clock.now())
      if (!changed) throw absentSecret()
      await onChanged(teamId, changed.name)
      return changed
    },

    async delete(teamId, idOrName) {
      const gone = await store.delete(teamId, idOrName.toLowerCase())
      if (!gone) throw absentSecret()
      await onChanged(teamId, gone.name)
    },
  }
}

function nameTaken(name: string): Fault {
  return new Fault(
    'conflict',
    'secret_taken',
    `The team already has a secret with the name ${name}: choose another, or update it with POST /secrets/${name}`,
  )
}

function tooManySecrets(): Fault {
  return new Fault(
    'exhausted',
    'too_many_secrets',
    `Secret limit of the team reached (${maxSecrets}): delete secrets that are not needed`,
  )
}

/** Page tokens may contain only letters and digits. */
function tokenId({ id }: Secret): string {
  return id.replace(/^sec_/, '')
}
