import type { BuildFailure } from './build.ts'
import type { BuildLogEntry } from './build-log.ts'
import type { ImageLogin, Recipe } from './recipe.ts'
import type { FilesOnNode } from '../files-on-node.ts'
import type { Resources } from '../template.ts'

/** Node operations that builds need. */
export interface BuildNode {
  /** Streams progress; the last event is `done` or `failed`. Aborting the signal cancels the build. */
  build(order: BuildOrder, signal: AbortSignal): AsyncIterable<BuildEvent>
  /** Deletes it from the object store too. Succeeds also when the template does not exist. */
  deleteTemplate(nodeTemplateId: string, signal: AbortSignal): Promise<void>
  /** Lists the templates that were built on the node, or fetched by it. */
  listTemplates(signal: AbortSignal): Promise<FilesOnNode>
  /** Bytes on disk of these templates. Layers that several of them share count once. */
  measureTemplates(nodeTemplateIds: readonly string[], signal: AbortSignal): Promise<number>
  hasFiles(files: BuildFiles, signal: AbortSignal): Promise<boolean>
  /** Returns once the files are stored. Faults: `disk_full`, `build_files_refused`, `build_files_failed`. */
  putFiles(
    files: BuildFiles,
    archive: AsyncIterable<Uint8Array>,
    signal: AbortSignal,
  ): Promise<void>
}

export interface BuildOrder {
  readonly nodeTemplateId: string
  readonly parent: BuildParent
  readonly teamId: string
  readonly resources: Resources
  readonly recipe: Omit<Recipe, 'fromImage' | 'imageLogin' | 'fromTemplate'>
}

/** Parent of a build: a template on the node or a registry image. */
export type BuildParent =
  | { readonly nodeTemplateId: string }
  | { readonly image: string; readonly login: ImageLogin | undefined }

export type BuildEvent =
  | { readonly type: 'log'; readonly entry: BuildLogEntry }
  /** The build has left the queue of the node. */
  | { readonly type: 'started' }
  | { readonly type: 'done' }
  | { readonly type: 'failed'; readonly failure: BuildFailure }

/** Uploaded archive; build steps of the team refer to the archive by its hash. */
export interface BuildFiles {
  readonly teamId: string
  readonly hash: string
}
