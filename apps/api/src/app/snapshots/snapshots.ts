import type { Clock } from '@atoll/kit/clock'
import { Fault } from '@atoll/kit/fault'
import { fromToken, toToken } from '../../domain/paging.ts'
import { snapshotIdOf } from '../../domain/snapshot.ts'
import type { SnapshotFilter, SnapshotStore } from '../../domain/snapshot.ts'
import type { TeamStore } from '../../domain/teams/team.ts'
import { defaultTag, nameOf, parseReference } from '../../domain/template.ts'
import type { TemplateStore } from '../../domain/template.ts'
import type { Copying } from './copy-sandbox.ts'
import { readOwnName } from '../templates/own-name.ts'

/** Snapshots of a team. */
export interface Snapshots {
  create(teamId: string, sandboxId: string, name: string | undefined): Promise<SnapshotView>
  list(request: SnapshotListRequest): Promise<SnapshotList>
}

export interface SnapshotView {
  readonly snapshotId: string
  readonly names: readonly string[]
}

export interface SnapshotListRequest {
  readonly teamId: string
  readonly sandboxId: string | undefined
  readonly name: string | undefined
  readonly limit: number
  readonly nextToken: string | undefined
}

export interface SnapshotList {
  readonly snapshots: readonly SnapshotView[]
  readonly nextToken?: string
}

interface SnapshotPorts {
  readonly snapshots: SnapshotStore
  readonly templates: TemplateStore
  readonly teams: Pick<TeamStore, 'find'>
  readonly copying: Copying
  readonly clock: Clock
}

export function createSnapshots(ports: SnapshotPorts): Snapshots {
  const { snapshots, templates, teams, copying, clock } = ports
  return {
    async create(teamId, sandboxId, text) {
      const wanted = text === undefined ? undefined : await readOwnName(teams, text, teamId)
      if (wanted) await snapshots.checkName(wanted.name, teamId)
      const tag = wanted?.tag ?? defaultTag
      return copying.copy({ teamId, id: sandboxId, paused }, async (copy) => {
        const { source, snapshotId, keepsMemory } = copy
        const build = await templates.findBuildById(source.buildId)
        if (!build)
          throw new Error(`the template of sandbox ${sandboxId} is missing from the store`)
        const publication = {
          name: wanted?.name,
          tag,
          nodeTemplateId: build.nodeTemplateId,
          resources: source.resources,
          envdVersion: keepsMemory ? source.envdVersion : undefined,
        }
        const { templateId } = await snapshots.publish(snapshotId, publication, clock.now())
        const name = wanted && nameOf(wanted.name)
        return {
          snapshotId: `${name ?? templateId}:${tag}`,
          names: name === undefined ? [] : [name],
        }
      })
    },
    list: (request) => list(ports, request),
  }
}

function paused(id: string): Fault {
  return new Fault(
    'not_found',
    'sandbox_paused',
    `Sandbox ${id} is paused: resume it with POST /sandboxes/${id}/connect first`,
  )
}

async function list(ports: SnapshotPorts, request: SnapshotListRequest): Promise<SnapshotList> {
  const { limit, nextToken } = request
  const after = nextToken === undefined ? undefined : fromToken(nextToken, 'desc')
  const filter = await toFilter(ports, request)
  if (!filter) return { snapshots: [] }
  // Read one row more than the limit to see whether there is another page.
  const found = await ports.snapshots.list(filter, { limit: limit + 1, after })
  const page = found.slice(0, limit)
  const last = page.at(-1)
  return {
    snapshots: page.map((one) => ({
      snapshotId: snapshotIdOf(one),
      names: one.names.map(nameOf),
    })),
    ...(last &&
      found.length > limit && {
        nextToken: toToken({ startedAt: last.createdAt, id: last.id }, 'desc'),
      }),
  }
}

/** Returns undefined when nothing can match: the name is unknown or not a snapshot of this team. */
async function toFilter(
  { templates }: SnapshotPorts,
  { teamId, sandboxId, name }: SnapshotListRequest,
): Promise<SnapshotFilter | undefined> {
  if (name === undefined) return { teamId, sandboxId }
  const reference = parseReference(name, 'name')
  const template = await templates.locate(reference, teamId)
  if (!template?.isSnapshot || template.teamId !== teamId) return undefined
  const filter = { teamId, sandboxId, templateId: template.id }
  if (reference.tag === undefined) return filter
  const build = await templates.findBuild(template.id, reference.tag)
  return build && { ...filter, buildId: build.buildId }
}
