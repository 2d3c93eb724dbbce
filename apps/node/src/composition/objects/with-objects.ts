import { Fault } from '@atoll/kit/fault'
import type { Builds } from '../../app/builds/builds.ts'
import type { Sandboxes } from '../../app/lifecycle/sandboxes.ts'
import { noObjects } from '../../app/objects/object-access.ts'
import type { ObjectAccess } from '../../app/objects/object-access.ts'
import { createSandboxFetches } from '../../app/objects/sandbox-fetches.ts'
import type { SnapshotStore } from '../../domain/sandboxes/snapshot.ts'
import type { TemplateFiles } from '../template-files.ts'
import { startCollecting } from './collecting.ts'
import type { NodeObjects } from './open-objects.ts'
import { startUploads } from './uploads.ts'
import type { UploadParts, Uploads } from './uploads.ts'

export interface ServedObjects {
  readonly sandboxes: Sandboxes
  readonly builds: Builds
  readonly access: ObjectAccess
  close(): Promise<void>
}

/** Starts the uploads, and lets requests fetch what this node lacks. Changes nothing without an object store. */
export function serveObjects(
  objects: NodeObjects | undefined,
  parts: Omit<UploadParts, 'objects'> & { readonly builds: Builds },
): ServedObjects {
  const { sandboxes, builds, host, files } = parts
  if (!objects) return { sandboxes, builds, access: noObjects, close: async () => {} }
  const uploads = startUploads({ ...parts, objects })
  const collecting = startCollecting(objects.collection, parts.log)
  const fetching = createFetching({ objects, files, snapshots: host.snapshots })
  return {
    sandboxes: withFetching(sandboxes, fetching, uploads),
    builds: withParents(builds, fetching, uploads),
    access: accessTo(objects, uploads, sandboxes),
    async close() {
      await Promise.all([uploads.close(), collecting.close()])
      objects.close()
    },
  }
}

function accessTo(
  objects: NodeObjects,
  uploads: Uploads,
  sandboxes: Pick<Sandboxes, 'adopt' | 'get'>,
): ObjectAccess {
  const { marks, deletions, transfers } = objects
  const fetches = createSandboxFetches({
    begin: (request) => sandboxes.adopt(request, () => objects.sandboxes.fetch(request)),
    receivedBytes: transfers.receivedBytes,
  })
  return {
    hasObjects: true,
    isDurable: objects.sandboxes.isDurable,
    durableOf: (kind, ids) => ids.filter((id) => marks.has(kind, id)),
    async deleteObjects(kind, id) {
      const prefix = `${kind}/${id}/`
      const isMarked = ofSandbox(id)
      const mayBeStored = marks.list('sandboxes').some(isMarked) || transfers.isPending(prefix)
      // Most sandboxes are never paused: they cost no request.
      if (kind === 'sandboxes' && !mayBeStored) return
      await deletions.request(prefix)
      if (kind === 'sandboxes') await marks.removeWhere('sandboxes', isMarked)
      uploads.nudge()
    },
    async deleteEnded(ended) {
      for (const { sandboxId, generation } of ended) {
        if (sandboxes.get(sandboxId)) continue
        await deletions.request(`sandboxes/${sandboxId}/`, generation)
        await marks.removeWhere('sandboxes', ofSandbox(sandboxId))
      }
      uploads.nudge()
    },
    forgetSandbox: (id) => marks.removeWhere('sandboxes', ofSandbox(id)),
    fetchSandbox: fetches.fetch,
  }
}

function ofSandbox(id: string): (mark: string) => boolean {
  return (mark) => mark.startsWith(`${id}.`)
}

interface FetchPorts {
  readonly objects: NodeObjects
  readonly files: Pick<TemplateFiles, 'findReadable'>
  readonly snapshots: Pick<SnapshotStore, 'find'>
}

/** Fetches what a request needs and this node lacks. Requests for the same thing share one fetch. */
function createFetching(ports: FetchPorts) {
  const { objects, files, snapshots } = ports
  const underway = new Map<string, Promise<void>>()
  /** Continues when the caller leaves: the next request finds the files here. */
  const share = (key: string, fetch: () => Promise<void>): Promise<void> => {
    const fetching = underway.get(key) ?? fetch().finally(() => underway.delete(key))
    underway.set(key, fetching)
    return fetching
  }
  /** A thing that the store lacks too is reported as what it is: missing on this node. */
  const ignoreMissing = (error: unknown) => {
    if (!(error instanceof Fault) || error.reason !== 'object_missing') throw error
  }
  return {
    async template(templateId: string): Promise<void> {
      if (files.findReadable(templateId)) return
      const fetch = () => objects.templates.fetch(templateId)
      await share(`template ${templateId}`, fetch).catch(ignoreMissing)
    },
    async snapshot(snapshotId: string): Promise<void> {
      if (await snapshots.find(snapshotId)) return
      const fetch = () => objects.snapshots.fetch(snapshotId)
      await share(`snapshot ${snapshotId}`, fetch).catch(ignoreMissing)
    },
  }
}

type Fetching = ReturnType<typeof createFetching>

function withFetching(sandboxes: Sandboxes, fetching: Fetching, uploads: Uploads): Sandboxes {
  return {
    ...sandboxes,
    async create(request) {
      const { snapshotId, isNamed } = request
      if (snapshotId !== undefined) await fetching.snapshot(snapshotId)
      else if (!isNamed) await fetching.template(request.shape.templateId)
      return sandboxes.create(request)
    },
    async snapshot(sandboxId, snapshotId, options) {
      const taken = await sandboxes.snapshot(sandboxId, snapshotId, options)
      uploads.nudge()
      return taken
    },
  }
}

function withParents(builds: Builds, fetching: Fetching, uploads: Uploads): Builds {
  return {
    ...builds,
    async build(request, progress) {
      if (typeof request.parent === 'string') await fetching.template(request.parent)
      const built = await builds.build(request, progress)
      uploads.nudge()
      return built
    },
  }
}
