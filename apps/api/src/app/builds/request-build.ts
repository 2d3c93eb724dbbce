import type { Clock } from '@atoll/kit/clock'
import { Fault } from '@atoll/kit/fault'
import { tooManyBuilds } from '../../domain/builds/build.ts'
import type { BuildStore, RequestedBuild, WantedBuild } from '../../domain/builds/build.ts'
import { checkResources } from '../../domain/teams/limits.ts'
import type { TeamStore } from '../../domain/teams/team.ts'
import { checkNewTag, defaultTag } from '../../domain/template.ts'
import type { Resources } from '../../domain/template.ts'
import type { LimitsOf } from '../teams/limits.ts'
import { readOwnName } from '../templates/own-name.ts'

export interface BuildRequest {
  readonly teamId: string
  readonly userId: string | undefined
  /** Name `[namespace/]alias[:tag]` or template ID; undefined creates a new template without a name. */
  readonly of: { readonly name: string } | { readonly templateId: string } | undefined
  readonly tags: readonly string[]
  readonly cpuCount: number | undefined
  readonly memoryMb: number | undefined
  /** Minimum disk size. */
  readonly diskSizeMb: number | undefined
}

/** Records a new build, which then waits to be started. */
export type RequestBuild = (
  request: BuildRequest,
) => Promise<RequestedBuild & { readonly tags: readonly string[]; readonly resources: Resources }>

const defaultCpuCount = 2
const defaultMemoryMb = 1024

export function createRequestBuild(ports: {
  readonly builds: BuildStore
  readonly teams: Pick<TeamStore, 'find'>
  readonly limitsOf: LimitsOf
  /** Throws a fault when the team has used up its disk quota. */
  readonly checkKept: (teamId: string) => Promise<void>
  readonly clock: Clock
}): RequestBuild {
  const { builds, teams, limitsOf, checkKept, clock } = ports
  return async ({ of: target, tags: requestedTags, ...request }) => {
    const { teamId, userId } = request
    for (const tag of requestedTags) checkNewTag(tag)
    const named =
      target && 'name' in target ? await readName(teams, target.name, teamId) : undefined
    const all = new Set([...(named?.tag === undefined ? [] : [named.tag]), ...requestedTags])
    const tags = all.size === 0 ? [defaultTag] : [...all]
    const resources = {
      cpuCount: request.cpuCount ?? defaultCpuCount,
      memoryMb: request.memoryMb ?? defaultMemoryMb,
      diskSizeMb: request.diskSizeMb ?? 0,
    }
    const limits = await limitsOf(teamId)
    checkResources(resources, limits, 'the build')
    await checkKept(teamId)
    const of = target && 'templateId' in target ? target : named?.name
    const wanted: WantedBuild = { teamId, userId, of, tags, resources }
    const check = (others: number) => {
      if (others >= limits.concurrentBuilds) throw tooManyBuilds(limits)
    }
    return { ...(await builds.request(wanted, check, clock.now())), tags, resources }
  }
}

async function readName(teams: Pick<TeamStore, 'find'>, text: string, teamId: string) {
  if (text.trim() !== '') return readOwnName(teams, text, teamId)
  throw new Fault('invalid', 'name_missing', 'Name is required: send `name` in the JSON body')
}
