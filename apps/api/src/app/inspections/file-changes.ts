import { Fault } from '@atoll/kit/fault'
import { compareChanges, compareFile } from '../../domain/compare-changes.ts'
import type { ChangedFile, ChangePage, FileChange } from '../../domain/file-changes.ts'
import type { StartedSandbox } from '../../domain/sandboxes/sandbox.ts'
import type { TemplateStore } from '../../domain/template.ts'
import type { Fleet } from '../nodes/fleet.ts'
import type { Sandboxes } from '../sandboxes/sandboxes.ts'

/** Files that a team's sandboxes changed, since their template or compared with each other. */
export interface FileChangeReader {
  list(sandbox: TeamSandbox, query: ListQuery, signal: AbortSignal): Promise<ChangeList>
  read(sandbox: TeamSandbox, query: ReadQuery, signal: AbortSignal): Promise<ChangedFile>
}

export interface TeamSandbox {
  readonly teamId: string
  readonly sandboxId: string
}

export interface ChangeList extends Omit<ChangePage, 'next'> {
  readonly nextToken?: string
}

interface ReadQuery {
  readonly path: string
  /** Sandbox to compare with. Undefined: the template. */
  readonly otherId: string | undefined
}

interface ListQuery extends ReadQuery {
  readonly limit: number
  readonly nextToken: string | undefined
}

interface ChangePorts {
  readonly sandboxes: Pick<Sandboxes, 'get'>
  readonly templates: Pick<TemplateStore, 'findBuildById'>
  readonly fleet: Pick<Fleet, 'member'>
}

export function createFileChanges(ports: ChangePorts): FileChangeReader {
  const { sandboxes, fleet } = ports
  return {
    async list({ teamId, sandboxId }, query, signal) {
      const sandbox = await sandboxes.get(teamId, sandboxId)
      if (query.otherId !== undefined) return compare(ports, sandbox, query, signal)
      const { path, limit, nextToken } = query
      const node = fleet.member(sandbox.nodeId).changes
      const after = nextToken === undefined ? undefined : Buffer.from(nextToken, 'base64url')
      const wanted = { path: Buffer.from(path), after, limit }
      const { next, changes, isComplete } = await node.list(sandboxId, wanted, signal)
      const token = next && { nextToken: next.toString('base64url') }
      return { changes, ...token, isComplete }
    },

    async read({ teamId, sandboxId }, { path, otherId }, signal) {
      const sandbox = await sandboxes.get(teamId, sandboxId)
      const readOf = ({ id, nodeId }: StartedSandbox) =>
        fleet.member(nodeId).changes.read(id, Buffer.from(path), signal)
      const other = otherId === undefined ? undefined : await sandboxes.get(teamId, otherId)
      if (other) await requireSameTemplate(ports, sandbox, other)
      const ours = await readOf(sandbox)
      const changed = other ? compareFile(path, ours, await readOf(other)) : ours
      if (changed) return changed
      throw new Fault(
        'not_found',
        'file_not_changed',
        other
          ? `Neither sandbox has changed ${path}: the file does not exist, or is the same as in the template`
          : `The sandbox has not changed ${path}: the file does not exist, or is the same as in the template`,
      )
    },
  }
}

/** Each page starts a process on the node. */
const pageSize = 1000
const maxPages = 10

async function compare(
  ports: ChangePorts,
  sandbox: StartedSandbox,
  { path, limit, nextToken, otherId = '' }: ListQuery,
  signal: AbortSignal,
): Promise<ChangeList> {
  const other = await ports.sandboxes.get(sandbox.teamId, otherId)
  await requireSameTemplate(ports, sandbox, other)
  const ours = await listAll(ports, sandbox, path, signal)
  const theirs = await listAll(ports, other, path, signal)
  const after = nextToken === undefined ? '' : Buffer.from(nextToken, 'base64url').toString('utf8')
  const found = compareChanges(ours.changes, theirs.changes).filter((change) => change.path > after)
  const changes = found.slice(0, limit)
  const last = found.length > limit ? changes.at(-1) : undefined
  return {
    changes,
    ...(last && { nextToken: Buffer.from(last.path).toString('base64url') }),
    isComplete: ours.isComplete && theirs.isComplete,
  }
}

async function listAll(
  { fleet }: ChangePorts,
  { id, nodeId }: StartedSandbox,
  path: string,
  signal: AbortSignal,
): Promise<{ readonly changes: FileChange[]; readonly isComplete: boolean }> {
  const node = fleet.member(nodeId).changes
  const changes: FileChange[] = []
  let isComplete = true
  let after: Buffer | undefined
  for (let page = 0; page < maxPages; page += 1) {
    const found = await node.list(id, { path: Buffer.from(path), after, limit: pageSize }, signal)
    changes.push(...found.changes)
    isComplete &&= found.isComplete
    if (!found.next) return { changes, isComplete }
    after = found.next
  }
  throw new Fault(
    'conflict',
    'too_many_changes',
    `Sandbox ${id} has more than ${pageSize * maxPages} changes in ${path}: compare a smaller directory, with the query parameter path`,
  )
}

/** Changes are known since the template, so only sandboxes of the same template files can be compared. */
async function requireSameTemplate(
  { templates }: ChangePorts,
  ours: StartedSandbox,
  theirs: StartedSandbox,
): Promise<void> {
  if (ours.buildId === theirs.buildId) return
  const [our, their] = await Promise.all([
    templates.findBuildById(ours.buildId),
    templates.findBuildById(theirs.buildId),
  ])
  if (our && their && our.nodeTemplateId === their.nodeTemplateId) return
  throw new Fault(
    'conflict',
    'templates_differ',
    `Sandboxes ${ours.id} and ${theirs.id} were not made from the same template build, so they cannot be compared`,
  )
}
