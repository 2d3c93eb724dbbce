import { randomUUID } from 'node:crypto'
import type { Clock } from '@atoll/kit/clock'
import { newTemplateId, randomHex } from '@atoll/kit/id'
import { accessTokenPrefix, apiKeyPrefix, newSecret } from '../domain/teams/key.ts'
import { toSlug } from '../domain/teams/team.ts'
import type { SettingStore, TeamStore } from '../domain/teams/team.ts'
import type { Resources, TemplateStore } from '../domain/template.ts'

/** First-start setup of an empty store. */

export interface FirstCredentials {
  readonly teamId: string
  readonly apiKey: string
  readonly accessToken: string
}

/**
 * Creates the first team, user, key and token if there is no team yet. `save` runs before the store is written: after a
 * crash in between, the next start creates and saves new credentials, so none are ever lost.
 */
export async function createFirstTeam(
  deps: { readonly teams: TeamStore; readonly clock: Clock },
  save: (credentials: FirstCredentials) => Promise<void>,
): Promise<FirstCredentials | undefined> {
  if (!(await deps.teams.isEmpty())) return undefined
  const now = deps.clock.now()
  const team = {
    id: randomUUID(),
    name: 'default',
    slug: toSlug('default'),
    createdAt: now,
    limits: {},
  }
  const user = { id: randomUUID(), email: null, defaultTeamId: team.id }
  const apiKey = newSecret(apiKeyPrefix)
  const accessToken = newSecret(accessTokenPrefix)
  const credentials = {
    teamId: team.id,
    apiKey: apiKey.value,
    accessToken: accessToken.value,
  }
  await save(credentials)
  await deps.teams.insertFirst({
    team,
    user,
    apiKey: {
      id: randomUUID(),
      teamId: team.id,
      name: 'default',
      mask: apiKey.mask,
      createdAt: now,
      createdBy: { id: user.id, email: user.email },
      lastUsedAt: undefined,
    },
    apiKeyHash: apiKey.hash,
    accessToken: {
      id: randomUUID(),
      userId: user.id,
      name: 'default',
      mask: accessToken.mask,
      createdAt: now,
    },
    accessTokenHash: accessToken.hash,
  })
  return credentials
}

/** Creates the template `base`, which every installation has. Its resources follow the configuration. */
export async function ensureBaseTemplate(
  deps: { readonly templates: TemplateStore; readonly clock: Clock },
  resources: Resources,
): Promise<void> {
  const template = {
    id: newTemplateId(),
    buildId: randomUUID(),
    alias: 'base',
    public: true,
    nodeTemplateId: 'base',
    resources,
  }
  await deps.templates.ensure(template, deps.clock.now())
}

/** Returns the seed of all sandbox access tokens. Stored, because the tokens must survive a restart. */
export function ensureTokenSeed(settings: SettingStore): Promise<string> {
  return settings.ensure('token_seed', () => randomHex(32))
}
