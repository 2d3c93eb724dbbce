import type { BuildStore } from '../../domain/builds/build.ts'
import type { LostBuild } from '../../domain/node-files.ts'
import { maybeUploaded, noteUploaded } from '../../domain/sandboxes/lost-node.ts'
import type { LostSandbox, SandboxStore } from '../../domain/sandboxes/sandbox-store.ts'
import type { SnapshotStore } from '../../domain/snapshot.ts'
import type { PausedContent, Uploaded } from '../../domain/uploaded.ts'
import type { AskUploaded } from './ask-uploaded.ts'

interface NotePorts {
  readonly sandboxes: Pick<SandboxStore, 'update'>
  readonly snapshots: Pick<SnapshotStore, 'markDurable'>
  readonly builds: Pick<BuildStore, 'markDurable'>
}

interface Lost {
  readonly sandboxes: readonly LostSandbox[]
  readonly builds: readonly LostBuild[]
}

/** Number of contents that a node accepts in one call. */
const maxQuery = 200
const limitMs = 60_000

/**
 * Asks the object store about everything that a forgotten node may have uploaded while no api reached it, and notes what is there,
 * as a sweep of the node does. Throws a fault when the store cannot be asked.
 */
export async function noteUploads(
  ports: NotePorts,
  ask: AskUploaded,
  nodeId: string,
  { sandboxes, builds }: Lost,
): Promise<void> {
  const limit = AbortSignal.timeout(limitMs)
  const paused = sandboxes.flatMap((sandbox) => maybeUploaded(sandbox) ?? [])
  const snapshotIds = builds.flatMap(({ snapshotId }) => snapshotId ?? [])
  const templates = builds.filter(({ snapshotId }) => snapshotId === undefined)
  const nodeTemplateIds = [...new Set(templates.map((template) => template.nodeTemplateId))]
  const queries = [
    ...chunks(paused).map((contents) => ({ ...none, contents })),
    ...chunks(snapshotIds).map((ids) => ({ ...none, snapshotIds: ids })),
    ...chunks(nodeTemplateIds).map((ids) => ({ ...none, nodeTemplateIds: ids })),
  ]
  for (const query of queries) {
    const found = await ask(query, limit)
    if (!found) return
    await note(ports, nodeId, found)
  }
}

const none: Uploaded = { contents: [], snapshotIds: [], nodeTemplateIds: [] }

async function note(ports: NotePorts, nodeId: string, found: Uploaded): Promise<void> {
  await ports.snapshots.markDurable(found.snapshotIds)
  await ports.builds.markDurable(found.nodeTemplateIds)
  for (const content of found.contents) await noteSandbox(ports, nodeId, content)
}

async function noteSandbox(
  { sandboxes }: NotePorts,
  nodeId: string,
  content: PausedContent,
): Promise<void> {
  await sandboxes.update(content.id, (current) => noteUploaded(current, nodeId, content))
}

function chunks<T>(items: readonly T[]): T[][] {
  const count = Math.ceil(items.length / maxQuery)
  return Array.from({ length: count }, (_, index) =>
    items.slice(index * maxQuery, (index + 1) * maxQuery),
  )
}
