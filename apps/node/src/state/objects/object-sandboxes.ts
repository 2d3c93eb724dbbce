import { join } from 'node:path'
import { Fault } from '@atoll/kit/fault'
import { randomLabel } from '@atoll/kit/id'
import { z } from 'zod'
import type { CellRecord } from '../../domain/sandboxes/cell.ts'
import { generationIn, isSameContent, nameOfContent } from '../../domain/sandboxes/content-name.ts'
import type { ContentName } from '../../domain/sandboxes/content-name.ts'
import type { FetchRequest } from '../../domain/sandboxes/fetch-request.ts'
import { isEvicted } from '../../domain/sandboxes/sandbox.ts'
import type { PausedSandbox } from '../../domain/sandboxes/sandbox.ts'
import type { PausedContent } from '../../domain/sandboxes/uploaded.ts'
import type { Bundles } from '@atoll/objects/bundles'
import { damagedObject } from '@atoll/objects/frames'
import { readFacts } from '@atoll/objects/manifest'
import { StoredCell } from '../records.ts'
import type { RecordStore } from '../records.ts'
import type { Linked } from './linked-folders.ts'
import type { Marks } from './marks.ts'
import { Needs } from './needs.ts'
import type { NeedsStore } from './needs.ts'
import { downloadTo, hasParts } from './object-snapshots.ts'
import type { StoredNeeds } from './stored-layers.ts'
import type { Transfers } from './transfers.ts'

/** Paused sandboxes in the object store, a bundle for each pause. */
export interface ObjectSandboxes {
  isDurable(record: PausedSandbox): boolean
  /** Notes that the store has a bundle of this node. Does nothing for paths of other things. */
  noteStored(path: string): Promise<void>
  /** Notes that the store has a sandbox which this node has evicted. A restored backup has no notes. */
  noteEvicted(record: PausedSandbox): Promise<void>
  /** `link` returns the files of exactly this content, or undefined if the sandbox has other content by now. */
  upload(record: PausedSandbox, work: UploadWork, signal: AbortSignal): Promise<void>
  /** Fetches a content as a paused cell of this node, whose record is on disk on return. */
  fetch(request: FetchRequest): Promise<PausedSandbox>
  /**
   * Asks the store whether it has all that a fetch of exactly this content needs. If its manifest or a part is gone, this
   * node uploads the content again.
   */
  isStored(record: PausedSandbox, signal: AbortSignal): Promise<boolean>
  /**
   * Returns what a fetch of exactly this content needs besides its own bundle. Undefined: the store does not have the whole
   * bundle. Changes no mark: another node may have uploaded the content.
   */
  findNeeds(content: PausedContent, signal: AbortSignal): Promise<StoredNeeds | undefined>
}

export interface UploadWork {
  /** Waits until the disk of a pause without memory is unmounted and on stable storage: its record is written before. */
  writeDisk(): Promise<void>
  link(): Promise<Linked | undefined>
  /** Whether the sandbox is still paused with this content. */
  isCurrent(): boolean
}

const pathPattern = /^sandboxes\/([a-z0-9]+)\/(\d+(?:\.[a-z0-9]+)?)$/

const Facts = z.object({ origin: z.string(), record: StoredCell, needs: Needs })

interface SandboxObjectPorts {
  readonly transfers: Transfers
  readonly bundles: Pick<Bundles, 'findWhole' | 'listPaths' | 'remove'>
  readonly marks: Marks
  readonly needs: NeedsStore
  readonly records: Pick<RecordStore, 'adopt'>
  /** ID of this node. */
  readonly nodeId: string
}

export function createObjectSandboxes(ports: SandboxObjectPorts): ObjectSandboxes {
  const { transfers, bundles, marks, nodeId } = ports

  return {
    isDurable: (record) => isEvicted(record) || marks.has('sandboxes', markOf(record)),

    async upload(record, { writeDisk, link, isCurrent }, signal) {
      const needs = await ports.needs.upload(record, signal)
      if (record.memory === undefined) await writeDisk()
      await using linked = await link()
      if (!linked) return
      const path = pathOf(record.owner.sandboxId, contentOf(record))
      const bundle = { path, folders: linked.folders, isWanted: isCurrent }
      const facts = { origin: nodeId, record, needs }
      const onStored = async (outcome: 'written' | 'present') => {
        if (outcome === 'present') await checkOrigin(transfers, path, nodeId)
        await marks.add('sandboxes', markOf(record))
      }
      const outcome = await transfers.upload({ ...bundle, facts, onStored }, signal)
      if (outcome !== 'unwanted') await removeOlder({ bundles, marks }, record, signal)
    },

    noteStored: (path) => addMark(marks, path),

    noteEvicted: (record) => marks.add('sandboxes', markOf(record)),

    fetch: (request) => fetchPaused(ports, request),

    isStored: (record, signal) => isStoredWhole(ports, record, signal),

    async findNeeds({ sandboxId, ...content }, signal) {
      const manifest = await bundles.findWhole(pathOf(sandboxId, content), signal)
      if (!manifest) return undefined
      const { record, needs } = readFacts(manifest, Facts)
      const isOwn = record.owner?.sandboxId === sandboxId && isSameContent(record, content)
      if (!isOwn || !hasParts(manifest, record.memory)) return undefined
      return { layer: record.layer, envd: needs.envd }
    },
  }
}

async function fetchPaused(
  { transfers, marks, needs, records }: SandboxObjectPorts,
  request: FetchRequest,
): Promise<PausedSandbox> {
  const { sandboxId, generation, boot } = request
  const manifest = await transfers.find(pathOf(sandboxId, request))
  const facts = readFacts(manifest, Facts)
  const { owner, memory, ...rest } = facts.record
  if (owner?.sandboxId !== sandboxId || !isSameContent(rest, request)) throw damagedObject()
  const kept = { ...rest, ...(!boot && memory !== undefined && { memory }) }
  const envd = await needs.fetch(kept, facts.needs)
  const record = {
    ...kept,
    owner: { ...owner, generation },
    envd,
    cellId: `c${randomLabel(20)}`,
    phase: 'paused',
    disk: 'disk.img',
  } satisfies CellRecord
  // The mark comes first: a cell without its mark would look like outdated content of this node.
  await marks.add('sandboxes', markOf(record))
  await records.adopt(record, (folder) =>
    downloadTo(transfers, boot ? withoutMemory(manifest) : manifest, {
      disk: join(folder, record.disk),
      memoryDir: join(folder, 'memory'),
    }),
  )
  return record
}

async function isStoredWhole(
  { bundles, marks, needs }: Pick<SandboxObjectPorts, 'bundles' | 'marks' | 'needs'>,
  record: PausedSandbox,
  signal: AbortSignal,
): Promise<boolean> {
  const { owner, layer, memory, keptGeneration, keptId } = record
  // Without an ID, contents of two times of the database may share the name.
  if (keptGeneration === undefined || keptId === undefined) return false
  const content = { keptGeneration, keptId }
  const manifest = await bundles.findWhole(pathOf(owner.sandboxId, content), signal)
  if (!manifest) {
    await marks.removeWhere('sandboxes', (mark) => mark === markOf(record))
    return false
  }
  const facts = readFacts(manifest, Facts)
  const isOwn = facts.record.owner?.sandboxId === owner.sandboxId
  const isSame = isSameContent(facts.record, content) && facts.record.layer === layer
  if (!isOwn || !isSame || !hasParts(manifest, memory)) return false
  return needs.areStored(layer, facts.needs, signal)
}

async function addMark(marks: Marks, path: string): Promise<void> {
  const [, sandboxId, name] = pathPattern.exec(path) ?? []
  if (sandboxId !== undefined) await marks.add('sandboxes', `${sandboxId}.${name}`)
}

/** A sandbox that was paused again needs no older content. Newer content of another node stays. */
async function removeOlder(
  {
    bundles,
    marks,
  }: { readonly bundles: Pick<Bundles, 'listPaths' | 'remove'>; readonly marks: Marks },
  record: PausedSandbox,
  signal: AbortSignal,
): Promise<void> {
  const prefix = `sandboxes/${record.owner.sandboxId}/`
  const kept = record.keptGeneration ?? 0
  for (const path of await bundles.listPaths(prefix, signal)) {
    if (generationIn(path.slice(prefix.length)) < kept) await bundles.remove(path, signal)
  }
  const { sandboxId } = record.owner
  const isOlder = (mark: string) =>
    mark.startsWith(`${sandboxId}.`) && generationIn(mark.slice(sandboxId.length + 1)) < kept
  await marks.removeWhere('sandboxes', isOlder)
}

function withoutMemory<T extends { readonly parts: readonly { readonly name: string }[] }>(
  manifest: T,
): T {
  return { ...manifest, parts: manifest.parts.filter(({ name }) => name !== 'memory') }
}

/** The same generation of a sandbox ran on one node only. Another node's content must not count as this one. */
async function checkOrigin(transfers: Transfers, path: string, nodeId: string): Promise<void> {
  const { origin } = readFacts(await transfers.find(path), Facts)
  if (origin === nodeId) return
  throw new Fault(
    'conflict',
    'object_conflict',
    `The object store has ${path} of the node ${origin}: this node runs on outdated data`,
  )
}

function contentOf({ keptGeneration = 0, keptId }: PausedSandbox): ContentName {
  return { keptGeneration, keptId }
}

function pathOf(sandboxId: string, content: ContentName): string {
  return `sandboxes/${sandboxId}/${nameOfContent(content)}`
}

function markOf(record: PausedSandbox): string {
  return `${record.owner.sandboxId}.${nameOfContent(contentOf(record))}`
}
