import { SnapshotInfo } from '@atoll/contracts/snapshots'
import { TemplateTag } from '@atoll/contracts/template-tags'
import { z } from 'zod'
import { readPages, readReply } from '../read-reply.ts'
import type { Snapshot, SnapshotTag } from '../replies.ts'
import { exchange, savingLimitMs } from '../request.ts'
import type { Call, PlatformOptions } from '../request.ts'
import { sandboxPath } from './sandboxes.ts'

/**
 * Copies of sandboxes that are kept. A snapshot is a build of a template: what is called a reference here is an id or a
 * name, with or without a tag, as `createSandbox` takes it too.
 */
export interface SnapshotCalls {
  /** The sandbox must run, and goes on. A name, `alias[:tag]`, may be used again: then the tag means the new one. */
  createSnapshot(sandboxId: string, name?: string, call?: Call): Promise<Snapshot>
  /** Newest first; asks for the next page only when the caller comes to it. */
  listSnapshots(filter?: SnapshotFilter, call?: Call): AsyncIterable<Snapshot>
  /** A reference without a tag means all that were made under this name. */
  deleteSnapshot(reference: string, call?: Call): Promise<void>
  /** From now on these tags mean what `reference` means. */
  tagSnapshot(reference: string, tags: readonly string[], call?: Call): Promise<void>
  /** Takes tags from a name; those that it does not have are no mistake. */
  untagSnapshot(name: string, tags: readonly string[], call?: Call): Promise<void>
  listSnapshotTags(name: string, call?: Call): Promise<readonly SnapshotTag[]>
}

export interface SnapshotFilter {
  /** Only copies of this sandbox. */
  readonly sandboxId?: string | undefined
  /** Only those under this name. */
  readonly name?: string | undefined
  readonly pageSize?: number | undefined
}

export function snapshotCalls(options: PlatformOptions): SnapshotCalls {
  return {
    async createSnapshot(sandboxId, name, call) {
      const path = `${sandboxPath(sandboxId)}/snapshots`
      const limits = { limitMs: savingLimitMs, ...call }
      const reply = await exchange(options, { method: 'POST', path, body: { name }, ...limits })
      return readReply(SnapshotInfo, reply)
    },
    listSnapshots({ sandboxId, name, pageSize } = {}, call = {}) {
      const query = { sandboxID: sandboxId, name, limit: pageSize?.toString() }
      return readPages(SnapshotInfo, options, { path: '/snapshots', query, ...call })
    },
    async deleteSnapshot(reference, call) {
      const path = `/templates/${encodeURIComponent(reference)}`
      await exchange(options, { method: 'DELETE', path, ...call })
    },
    async tagSnapshot(reference, tags, call) {
      const body = { target: reference, tags }
      await exchange(options, { method: 'POST', path: tagsPath, body, ...call })
    },
    async untagSnapshot(name, tags, call) {
      const body = { name, tags }
      await exchange(options, { method: 'DELETE', path: tagsPath, body, ...call })
    },
    async listSnapshotTags(name, call) {
      const path = `/templates/${encodeURIComponent(name)}/tags`
      const reply = await exchange(options, { method: 'GET', path, ...call })
      return readReply(z.array(TemplateTag), reply)
    },
  }
}

const tagsPath = '/templates/tags'
