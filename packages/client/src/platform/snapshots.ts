import { SnapshotInfo } from '@atoll/contracts/snapshots'
import { TemplateTag } from '@atoll/contracts/templates/tags'
import { z } from 'zod'
import { readPages, readReply } from './read-reply.ts'
import type { Snapshot, SnapshotTag } from '../replies.ts'
import { sendRequest, snapshotTimeoutMs } from './request.ts'
import type { CallOptions, PlatformOptions } from './request.ts'
import { sandboxPath } from './sandboxes.ts'

/**
 * Operations on snapshots. A snapshot is a build of a template: a reference is an ID or a name with an optional tag, as
 * `createSandbox` accepts it.
 */
export interface SnapshotCalls {
  /**
   * Copies a running sandbox, which keeps running. If the name, `alias[:tag]`, exists, its tag moves to the new
   * snapshot.
   */
  createSnapshot(sandboxId: string, name?: string, call?: CallOptions): Promise<Snapshot>
  /** Lists newest first. Requests a page only when the caller reaches it. */
  listSnapshots(filter?: SnapshotFilter, call?: CallOptions): AsyncIterable<Snapshot>
  /** A reference without a tag deletes all snapshots of that name. */
  deleteSnapshot(reference: string, call?: CallOptions): Promise<void>
  /** Points these tags at the build that `reference` means. */
  tagSnapshot(reference: string, tags: readonly string[], call?: CallOptions): Promise<void>
  /** Removes tags from a name. Ignores tags that the name does not have. */
  untagSnapshot(name: string, tags: readonly string[], call?: CallOptions): Promise<void>
  listSnapshotTags(name: string, call?: CallOptions): Promise<readonly SnapshotTag[]>
}

export interface SnapshotFilter {
  /** Only snapshots of this sandbox. */
  readonly sandboxId?: string | undefined
  /** Only snapshots of this name. */
  readonly name?: string | undefined
  readonly pageSize?: number | undefined
}

export function snapshotCalls(options: PlatformOptions): SnapshotCalls {
  return {
    async createSnapshot(sandboxId, name, call) {
      const path = `${sandboxPath(sandboxId)}/snapshots`
      const limits = { timeoutMs: snapshotTimeoutMs, ...call }
      const reply = await sendRequest(options, { method: 'POST', path, body: { name }, ...limits })
      return readReply(SnapshotInfo, reply)
    },
    listSnapshots({ sandboxId, name, pageSize } = {}, call = {}) {
      const query = { sandboxID: sandboxId, name, limit: pageSize?.toString() }
      return readPages(SnapshotInfo, options, { path: '/snapshots', query, ...call })
    },
    async deleteSnapshot(reference, call) {
      const path = `/templates/${encodeURIComponent(reference)}`
      await sendRequest(options, { method: 'DELETE', path, ...call })
    },
    async tagSnapshot(reference, tags, call) {
      const body = { target: reference, tags }
      await sendRequest(options, { method: 'POST', path: tagsPath, body, ...call })
    },
    async untagSnapshot(name, tags, call) {
      const body = { name, tags }
      await sendRequest(options, { method: 'DELETE', path: tagsPath, body, ...call })
    },
    async listSnapshotTags(name, call) {
      const path = `/templates/${encodeURIComponent(name)}/tags`
      const reply = await sendRequest(options, { method: 'GET', path, ...call })
      return readReply(z.array(TemplateTag), reply)
    },
  }
}

const tagsPath = '/templates/tags'
