import { uptime } from 'node:os'
import { join } from 'node:path'
import { ensureKeyFile } from '@atoll/kit/encryption/key-file'
import type { Logger } from '@atoll/kit/log'
import { createBundles } from '@atoll/objects/bundles'
import type { Bundles } from '@atoll/objects/bundles'
import { createCondemned } from '@atoll/objects/condemned'
import type { ObjectStore } from '@atoll/objects/object-store'
import { acceptsObjects } from '@atoll/objects/probe'
import { objectSettingsOf } from '@atoll/objects/settings'
import { checkReadable } from '../../app/lifecycle/check-readable.ts'
import type { NodeConfig } from '../../config.ts'
import type { LogNotes, StoredLogs } from '../../domain/sandboxes/log.ts'
import type { Runtime } from '../../domain/sandboxes/runtime.ts'
import { readCpu } from '../../linux/machine.ts'
import { rememberClaims } from '../../state/objects/claims.ts'
import { createLayerCollection } from '../../state/objects/collect-layers.ts'
import type { LayerCollection } from '../../state/objects/collect-layers.ts'
import { openDeletions } from '../../state/objects/deletions.ts'
import type { Deletions } from '../../state/objects/deletions.ts'
import { openLinkedFolders } from '../../state/objects/linked-folders.ts'
import type { LinkedFolders } from '../../state/objects/linked-folders.ts'
import { openMarks } from '../../state/objects/marks.ts'
import type { Marks } from '../../state/objects/marks.ts'
import { openLogNotes } from '../../state/objects/log-notes.ts'
import { createFindStored } from '../../state/objects/find-stored.ts'
import type { FindStored } from '../../state/objects/find-stored.ts'
import { createNeededLayers } from '../../state/objects/needed-layers.ts'
import { createNeeds } from '../../state/objects/needs.ts'
import { openNotesFolder } from '../../state/objects/notes-folder.ts'
import { openObjectBuildFiles } from '../../state/objects/object-build-files.ts'
import type { ObjectBuildFiles } from '../../state/objects/object-build-files.ts'
import { createObjectEnvds } from '../../state/objects/object-envds.ts'
import { createObjectLayers } from '../../state/objects/object-layers.ts'
import { createObjectLogs } from '../../state/objects/object-logs.ts'
import { createObjectSandboxes } from '../../state/objects/object-sandboxes.ts'
import type { ObjectSandboxes } from '../../state/objects/object-sandboxes.ts'
import { createObjectSnapshots } from '../../state/objects/object-snapshots.ts'
import type { ObjectSnapshots } from '../../state/objects/object-snapshots.ts'
import { createObjectTemplates } from '../../state/objects/object-templates.ts'
import type { ObjectTemplates } from '../../state/objects/object-templates.ts'
import { shareBuildFiles } from '../../state/objects/shared-build-files.ts'
import type { SharedBuildFiles } from '../../state/objects/shared-build-files.ts'
import { openTransfers } from '../../state/objects/transfers.ts'
import type { Transfers } from '../../state/objects/transfers.ts'
import { commitLayer, exists, hashTree, sweepBuilds } from '../../template/layer.ts'
import type { EnvdFiles } from '../envd-files.ts'
import type { Host } from '../host.ts'
import { layersDirOf } from '../node-files.ts'
import type { TemplateFiles } from '../template-files.ts'

/** Access of this node to the object store. */
export interface NodeObjects {
  readonly marks: Marks
  readonly deletions: Deletions
  readonly transfers: Transfers
  readonly links: LinkedFolders
  readonly snapshots: ObjectSnapshots
  readonly templates: ObjectTemplates
  readonly sandboxes: ObjectSandboxes
  readonly findStored: FindStored
  readonly buildFiles: ObjectBuildFiles
  /** Files for build steps of this node and of the object store. */
  readonly archives: SharedBuildFiles
  readonly logs: StoredLogs
  readonly logNotes: LogNotes
  readonly collection: LayerCollection
  /** Whether the store takes objects at this moment. */
  isWorking(signal: AbortSignal): Promise<boolean>
  close(): void
}

export interface ObjectParts {
  readonly config: NodeConfig
  readonly host: Host
  readonly runtime: Runtime
  readonly files: TemplateFiles
  readonly envd: EnvdFiles
  readonly nodeId: string
  readonly log: Logger
}

/** `files`: those of this node, and with an object store also the build files in it. */
export interface OpenedObjects {
  /** Undefined without settings for an object store. */
  readonly objects: NodeObjects | undefined
  readonly files: TemplateFiles
}

/** Does not wait for the store. */
export async function openObjects(parts: ObjectParts): Promise<OpenedObjects> {
  const settings = objectSettingsOf(parts.config)
  if (!settings) return { objects: undefined, files: parts.files }
  const keys = await ensureKeyFile({ path: settings.keyFile, isSupplied: true })
  // Loaded on demand: the library is large, and most nodes have no object store.
  const { createS3Store } = await import('@atoll/objects/s3-store')
  const store = createS3Store(settings)
  const notes = join(parts.host.installation.dataDir, 'objects')
  const dir = await openNotesFolder(notes, settings)
  const objects = await openIn(parts, { store, keys, dir, close: store.close })
  return { objects, files: { ...parts.files, archives: objects.archives } }
}

interface Place {
  readonly store: ObjectStore
  readonly keys: Awaited<ReturnType<typeof ensureKeyFile>>
  /** Folder for the notes about this store. */
  readonly dir: string
  close(): void
}

async function openIn(parts: ObjectParts, place: Place): Promise<NodeObjects> {
  const { host, runtime, files, envd, nodeId } = parts
  const { dir, store } = place
  const bundles = createBundles(store, place.keys)
  const marks = await openMarks(join(dir, 'durable'))
  const links = await openLinkedFolders(join(dir, 'links'))
  const { reserveSpace } = host.disks
  const transfers = await openTransfers({ dir: join(dir, 'uploads'), bundles, reserveSpace })
  const condemned = createCondemned({ store, bundles })
  // No correction of the time changes this clock, and it counts while the machine is suspended.
  const claims = rememberClaims(condemned, () => uptime() * 1000)
  const layers = createObjectLayers({
    ...{ transfers, marks, claims },
    steps: files.layers,
    base: await openBaseLayers(parts),
  })
  const built = { dir: envd.builtDir, hashFolder: hashTree }
  const envds = createObjectEnvds({ transfers, marks, claims, ...built })
  const needs = createNeeds({
    ...{ layers, envds },
    cpu: await readCpu(),
    checkReadable: (kept) => checkReadable(runtime, kept),
  })
  const shared = { transfers, bundles, marks, needs, links, layers }
  const onError = createOnError(parts.log, 'objects that nothing needs could not be removed')
  const kept = await openLogsAndFiles(parts, place, { transfers, bundles, marks, links })
  const needed = createNeededLayers(bundles)
  const sweeps = [kept.logs.sweep, kept.buildFiles.sweep]
  const bundled = {
    snapshots: createObjectSnapshots({ ...shared, snapshots: host.snapshots }),
    templates: createObjectTemplates({ ...shared, templates: files.templates }),
    sandboxes: createObjectSandboxes({ ...shared, records: host.records, nodeId }),
  }
  return {
    ...{ marks, transfers, links, ...kept, ...bundled },
    findStored: createFindStored({ bundles, ...bundled }),
    isWorking: (signal) => acceptsObjects(store, nodeId, signal),
    collection: createLayerCollection({ store, condemned, needed, sweeps, onError }),
    deletions: await openDeletions({
      ...{ dir: join(dir, 'deletions'), bundles },
      onError: createOnError(parts.log, 'objects could not be deleted'),
    }),
    close: place.close,
  }
}

const nowMs = () => Date.now()

function createOnError(log: Logger, what: string): (err: unknown, path: string) => void {
  return (err, path) =>
    log.warn({ err, event: 'node.objects', path }, `${what}; a later pass tries again`)
}

/** Opens the logs of sandboxes and the files for build steps in the store. */
async function openLogsAndFiles(
  { files, nodeId, log }: ObjectParts,
  { store, keys, dir }: Place,
  access: Pick<NodeObjects, 'transfers' | 'marks' | 'links'> & { readonly bundles: Bundles },
) {
  const onError = createOnError(log, 'old logs or files of builds could not be removed')
  const logs = createObjectLogs({ store, keys, nodeId, nowMs, onError })
  const workDir = join(dir, 'build-files')
  const buildFiles = await openObjectBuildFiles({ ...access, store, workDir, nowMs, onError })
  const archives = shareBuildFiles(files.archives, buildFiles, (err) =>
    log.warn(
      { err, event: 'node.objects' },
      'the object store did not say whether it has files for a build: the client sends them again',
    ),
  )
  return { logs, logNotes: await openLogNotes(join(dir, 'logs')), buildFiles, archives }
}

/** Several installations may share the folder, so each has a prefix of its own for unfinished layers. */
async function openBaseLayers({ config, host }: ObjectParts) {
  const dir = layersDirOf(config)
  const workPrefix = `.tmp-fetch-${host.installation.tag}-`
  await sweepBuilds(dir, workPrefix)
  return {
    dir,
    workPrefix,
    has: (name: string) => exists(join(dir, name)),
    commit: (folder: string) => commitLayer(dir, folder),
  }
}
