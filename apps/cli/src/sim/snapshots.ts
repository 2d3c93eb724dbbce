import { randomUUID } from 'node:crypto'
import { failure, page } from './http.ts'
import type { SimulatedRequest, Reply } from './http.ts'

export interface SimulatedSnapshot {
  readonly template: string
  readonly isNamed: boolean
  readonly buildId: string
  readonly sandboxId: string
  /** A tag names at most one snapshot of a template. */
  readonly tags: Set<string>
}

/** Namespace of the team, which names may omit. */
const namespace = 'team'

export function answerSnapshots(
  snapshots: readonly SimulatedSnapshot[],
  { url }: SimulatedRequest,
): Reply {
  const sandboxId = url.searchParams.get('sandboxID')
  const name = url.searchParams.get('name')
  const matching = snapshots.filter(
    (snapshot) =>
      (sandboxId === null || snapshot.sandboxId === sandboxId) &&
      (name === null || matches(snapshot, parseReference(name))),
  )
  return page(matching.toReversed().map(describeSnapshot), url)
}

export function createSnapshot(
  snapshots: SimulatedSnapshot[],
  sandboxId: string,
  { body }: SimulatedRequest,
): Reply {
  const name = typeof body['name'] === 'string' ? parseReference(body['name']) : undefined
  const template = name?.template ?? `template${snapshots.length}`
  const created = {
    ...{ template, sandboxId, buildId: randomUUID(), isNamed: name !== undefined },
    tags: new Set<string>(),
  }
  snapshots.push(created)
  setTag(snapshots, created, name?.tag ?? 'default')
  return { status: 201, body: describeSnapshot(created) }
}

export function findSnapshot(
  snapshots: readonly SimulatedSnapshot[],
  text: string,
): SimulatedSnapshot | undefined {
  const { template, tag = 'default' } = parseReference(text)
  return snapshots.find((snapshot) => matches(snapshot, { template, tag }))
}

export function answerTemplates(snapshots: SimulatedSnapshot[], request: SimulatedRequest): Reply {
  const [first = '', second] = request.rest.map((part) => decodeURIComponent(part))
  if (first === 'tags') return changeTags(snapshots, request)
  const matching = snapshots.filter((snapshot) => matches(snapshot, parseReference(first)))
  if (matching.length === 0) return failure(404, `Template ${first} was not found`)
  if (second === 'tags') return { status: 200, body: matching.flatMap(describeTags) }
  for (const snapshot of matching) snapshots.splice(snapshots.indexOf(snapshot), 1)
  return { status: 204 }
}

function changeTags(snapshots: SimulatedSnapshot[], { method, body }: SimulatedRequest): Reply {
  const tags = Array.isArray(body['tags']) ? body['tags'].map(String) : []
  if (method === 'DELETE') {
    const matching = snapshots.filter((snapshot) =>
      matches(snapshot, parseReference(String(body['name']))),
    )
    for (const snapshot of matching) for (const tag of tags) snapshot.tags.delete(tag)
    return { status: 204 }
  }
  const target = findSnapshot(snapshots, String(body['target']))
  if (!target) return failure(404, `Template ${String(body['target'])} was not found`)
  for (const tag of tags) setTag(snapshots, target, tag)
  return { status: 201, body: { tags, buildID: target.buildId } }
}

function setTag(
  snapshots: readonly SimulatedSnapshot[],
  target: SimulatedSnapshot,
  tag: string,
): void {
  for (const snapshot of snapshots)
    if (snapshot.template === target.template) snapshot.tags.delete(tag)
  target.tags.add(tag)
}

interface Reference {
  readonly template: string
  readonly tag: string | undefined
}

function parseReference(text: string): Reference {
  const [name = '', tag] = text.split(':')
  const isPlain = name.includes('/') || name.startsWith('template')
  return { template: isPlain ? name : `${namespace}/${name}`, tag }
}

function matches({ template, tags }: SimulatedSnapshot, reference: Reference): boolean {
  if (template !== reference.template) return false
  return reference.tag === undefined || tags.has(reference.tag)
}

function describeSnapshot({ template, isNamed, tags, buildId }: SimulatedSnapshot) {
  const [tag = buildId] = tags
  return { snapshotID: `${template}:${tag}`, names: isNamed ? [template] : [] }
}

function describeTags({ tags, buildId }: SimulatedSnapshot) {
  const createdAt = new Date().toISOString()
  return [...tags].map((tag) => ({ tag, buildID: buildId, createdAt }))
}
