import { randomUUID } from 'node:crypto'
import { failure, page } from './reply.ts'
import type { Asked, Reply } from './reply.ts'

/** A copy of a sandbox under a name, or under an id where it was given none. */
export interface SimulatedSnapshot {
  readonly template: string
  readonly isNamed: boolean
  readonly buildId: string
  readonly sandboxId: string
  /** No tag means two of one template. */
  readonly tags: Set<string>
}

/** Of the team; a name without it means the same. */
const namespace = 'team'

export function answerSnapshots(
  snapshots: readonly SimulatedSnapshot[],
  { url: asked }: Asked,
): Reply {
  const sandboxId = asked.searchParams.get('sandboxID')
  const name = asked.searchParams.get('name')
  const matching = snapshots.filter(
    (one) =>
      (sandboxId === null || one.sandboxId === sandboxId) &&
      (name === null || isMeant(one, parse(name))),
  )
  return page(matching.toReversed().map(shown), asked)
}

export function keepSnapshot(
  snapshots: SimulatedSnapshot[],
  sandboxId: string,
  { body }: Asked,
): Reply {
  const name = typeof body['name'] === 'string' ? parse(body['name']) : undefined
  const template = name?.template ?? `template${snapshots.length}`
  const made = {
    ...{ template, sandboxId, buildId: randomUUID(), isNamed: name !== undefined },
    tags: new Set<string>(),
  }
  snapshots.push(made)
  setTag(snapshots, made, name?.tag ?? 'default')
  return { status: 201, body: shown(made) }
}

export function findSnapshot(
  snapshots: readonly SimulatedSnapshot[],
  text: string,
): SimulatedSnapshot | undefined {
  const { template, tag = 'default' } = parse(text)
  return snapshots.find((one) => isMeant(one, { template, tag }))
}

export function answerTemplates(snapshots: SimulatedSnapshot[], asked: Asked): Reply {
  const [first = '', second] = asked.rest.map((part) => decodeURIComponent(part))
  if (first === 'tags') return changeTags(snapshots, asked)
  const meant = snapshots.filter((one) => isMeant(one, parse(first)))
  if (meant.length === 0) return failure(404, `Template ${first} was not found`)
  if (second === 'tags') return { status: 200, body: meant.flatMap(shownTags) }
  for (const one of meant) snapshots.splice(snapshots.indexOf(one), 1)
  return { status: 204 }
}

function changeTags(snapshots: SimulatedSnapshot[], { method, body }: Asked): Reply {
  const tags = Array.isArray(body['tags']) ? body['tags'].map(String) : []
  if (method === 'DELETE') {
    const meant = snapshots.filter((one) => isMeant(one, parse(String(body['name']))))
    for (const one of meant) for (const tag of tags) one.tags.delete(tag)
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
  for (const one of snapshots) if (one.template === target.template) one.tags.delete(tag)
  target.tags.add(tag)
}

interface Reference {
  readonly template: string
  readonly tag: string | undefined
}

function parse(text: string): Reference {
  const [name = '', tag] = text.split(':')
  const isPlain = name.includes('/') || name.startsWith('template')
  return { template: isPlain ? name : `${namespace}/${name}`, tag }
}

function isMeant({ template, tags }: SimulatedSnapshot, reference: Reference): boolean {
  if (template !== reference.template) return false
  return reference.tag === undefined || tags.has(reference.tag)
}

function shown({ template, isNamed, tags, buildId }: SimulatedSnapshot) {
  const [tag = buildId] = tags
  return { snapshotID: `${template}:${tag}`, names: isNamed ? [template] : [] }
}

function shownTags({ tags, buildId }: SimulatedSnapshot) {
  const createdAt = new Date().toISOString()
  return [...tags].map((tag) => ({ tag, buildID: buildId, createdAt }))
}
