import { Fault } from '@atoll/kit/fault'
import type { Logger } from '@atoll/kit/log'
import type { Builds } from '../../app/builds/builds.ts'
import type { Sandboxes } from '../../app/lifecycle/sandboxes.ts'
import { createFileUses } from '../../app/objects/file-uses.ts'
import type { FileUses } from '../../app/objects/file-uses.ts'
import type { SandboxLogs } from '../../app/logs/collect-logs.ts'
import { noObjects } from '../../app/objects/object-access.ts'
import type { ObjectAccess } from '../../app/objects/object-access.ts'
import { createSandboxFetches } from '../../app/objects/sandbox-fetches.ts'
import type { PausedSandbox } from '../../domain/sandboxes/sandbox.ts'
import type { Host } from '../host.ts'
import type { BuildFiles } from '../../state/build-files.ts'
import type { TemplateFiles } from '../template-files.ts'
import { startCollecting } from './collecting.ts'
import { noteSnapshotUse, startEvictions, useKey } from './evictions.ts'
import type { EvictionParts, Evictions } from './evictions.ts'
import type { NodeObjects } from './open-objects.ts'
import { startLogUploads } from './log-uploads.ts'
import { startUploads } from './uploads.ts'
import type { UploadParts, Uploads } from './uploads.ts'

export interface ServedObjects {
  readonly sandboxes: Sandboxes
  readonly builds: Builds
  readonly files: TemplateFiles
  readonly access: ObjectAccess
  close(): Promise<void>
}

/** Starts the uploads, and lets requests fetch what this node lacks. Changes nothing without an object store. */
export function serveObjects(
  objects: NodeObjects | undefined,
  parts: Omit<UploadParts & EvictionParts, 'objects' | 'uses'> & {
    readonly builds: Builds
    readonly logs: SandboxLogs
  },
): ServedObjects {
  const { sandboxes, builds, host, files, logs } = parts
  if (!objects) return { sandboxes, builds, files, access: noObjects, close: async () => {} }
  const uploads = startUploads({ ...parts, objects })
  const logUploads = startLogUploads({ ...parts, objects })
  const collecting = startCollecting(objects.collection, parts.log)
  const uses = createFileUses(() => performance.now())
  const evictions = startEvictions({ ...parts, objects, uses })
  const fetching = createFetching({ objects, files, host, uses })
  return {
    sandboxes: withFetching(sandboxes, fetching, uploads),
    builds: withParents(builds, fetching, uploads),
    files: { ...files, archives: withUploads(files.archives, uploads) },
    access: accessTo({ objects, uploads, sandboxes, logs, log: parts.log, uses, evictions }),
    async close() {
      const running = [uploads, logUploads, collecting, evictions]
      await Promise.all(running.map((part) => part.close()))
      objects.close()
    },
  }
}

interface AccessParts {
  readonly objects: NodeObjects
  readonly uploads: Uploads
  readonly sandboxes: Pick<Sandboxes, 'adopt' | 'get'>
  readonly logs: Pick<SandboxLogs, 'import'>
  readonly log: Logger
  readonly uses: FileUses
  readonly evictions: Evictions
}

function accessTo(parts: AccessParts): ObjectAccess {
  const { objects, uploads, sandboxes, uses, evictions } = parts
  const { marks, deletions, transfers } = objects
  const fetches = createSandboxFetches({
    async begin(request) {
      using _use = await uses.begin(useKey('sandboxes', request.sandboxId))
      await sandboxes.adopt(request, () =>
        withLog(objects, parts, request.sandboxId, objects.sandboxes.fetch(request)),
      )
    },
    receivedBytes: transfers.receivedBytes,
  })
  return {
    hasObjects: true,
    isDurable: objects.sandboxes.isDurable,
    durableOf: (kind, ids) => ids.filter((id) => marks.has(kind, id)),
    evictedSnapshots: () => marks.list('evicted-snapshots'),
    evictions: evictions.count,
    async deleteObjects(kind, id) {
      const prefix = `${kind}/${id}/`
      const isMarked = ofSandbox(id)
      const mayBeStored = marks.list('sandboxes').some(isMarked) || transfers.isPending(prefix)
      // Most sandboxes are never paused: they cost no request.
      if (kind === 'sandboxes' && !mayBeStored) return
      await deletions.request(prefix)
      if (kind === 'sandboxes') await marks.removeWhere('sandboxes', isMarked)
      if (kind === 'snapshots') await marks.removeWhere('evicted-snapshots', (one) => one === id)
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
    findStored: objects.findStored,
    forgetSandbox: (id) => marks.removeWhere('sandboxes', ofSandbox(id)),
    fetchSandbox: fetches.fetch,
    async readLog(query) {
      const limit = AbortSignal.timeout(readLogLimitMs)
      return (await objects.logs.read(query, limit)) ?? noStoredLog(query.sandboxId)
    },
  }
}

const readLogLimitMs = 8_000
/** A sandbox needs its log less than it needs to continue. */
const fetchLogLimitMs = 10_000

/** Fetches the log of a sandbox together with its content: the log continues on this node. */
async function withLog(
  { logs: stored }: Pick<NodeObjects, 'logs'>,
  { logs, log }: { readonly logs: Pick<SandboxLogs, 'import'>; readonly log: Logger },
  sandboxId: string,
  fetching: Promise<PausedSandbox>,
): Promise<PausedSandbox> {
  const query = { sandboxId, newestFirst: false, limit: Infinity }
  const onError = (err: unknown): undefined => {
    log.warn(
      { err, event: 'node.objects', sandboxId },
      'the log of a fetched sandbox could not be fetched: it begins with what the sandbox still has',
    )
  }
  const reading = stored.read(query, AbortSignal.timeout(fetchLogLimitMs)).catch(onError)
  const fetched = await fetching
  const entries = await reading
  if (entries) await logs.import(sandboxId, entries).catch(onError)
  return fetched
}

function noStoredLog(sandboxId: string): never {
  throw new Fault(
    'not_found',
    'object_missing',
    `The object store has no log of sandbox ${sandboxId}: it was never uploaded, or was removed`,
  )
}

function ofSandbox(id: string): (mark: string) => boolean {
  return (mark) => mark.startsWith(`${id}.`)
}

interface FetchPorts {
  readonly objects: NodeObjects
  readonly files: Pick<TemplateFiles, 'findReadable'>
  readonly host: Pick<Host, 'snapshots'>
  readonly uses: FileUses
}

/** Fetches what a request needs and this node lacks. Requests for the same thing share one fetch. */
function createFetching(ports: FetchPorts) {
  const { objects, files, host, uses } = ports
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
    /** The snapshot stays on this node until the result is disposed. */
    async snapshot(snapshotId: string): Promise<Disposable> {
      const use = await uses.begin(useKey('snapshots', snapshotId))
      try {
        if (!(await host.snapshots.find(snapshotId))) {
          const fetch = () => objects.snapshots.fetch(snapshotId)
          await share(`snapshot ${snapshotId}`, fetch).catch(ignoreMissing)
        }
        void noteSnapshotUse(host, snapshotId)
        return use
      } catch (error) {
        use[Symbol.dispose]()
        throw error
      }
    },
  }
}

type Fetching = ReturnType<typeof createFetching>

function withFetching(sandboxes: Sandboxes, fetching: Fetching, uploads: Uploads): Sandboxes {
  return {
    ...sandboxes,
    async create(request) {
      const { snapshotId, isNamed } = request
      if (snapshotId !== undefined) {
        using _use = await fetching.snapshot(snapshotId)
        return await sandboxes.create(request)
      }
      if (!isNamed) await fetching.template(request.shape.templateId)
      return sandboxes.create(request)
    },
    async snapshot(sandboxId, snapshotId, options) {
      const taken = await sandboxes.snapshot(sandboxId, snapshotId, options)
      uploads.nudge()
      return taken
    },
  }
}

function withUploads(archives: BuildFiles, uploads: Uploads): BuildFiles {
  return {
    ...archives,
    async put(ownerId, hash, pieces) {
      await archives.put(ownerId, hash, pieces)
      uploads.nudge()
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
