import type { BuildFailure } from './build.ts'
import type { BuildLogEntry } from './build-log.ts'
import type { ImageLogin, Recipe } from './recipe.ts'
import type { Resources } from './template.ts'

/** What the control plane asks of the node to make templates. */
export interface BuildNode {
  /** Tells of its progress; the last event is `done` or `failed`. Whoever aborts ends the build. */
  build(order: BuildOrder, signal: AbortSignal): AsyncIterable<BuildEvent>
  /** Succeeds also when there is none. */
  deleteTemplate(nodeTemplateId: string, signal: AbortSignal): Promise<void>
  /** Those that were built there. */
  listTemplates(signal: AbortSignal): Promise<readonly string[]>
  hasFiles(files: BuildFiles, signal: AbortSignal): Promise<boolean>
  /** They are there once it returns. Faults: `disk_full`, `build_files_refused`, `build_files_failed`. */
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

/** A template, by what the node knows it by, or an image. */
export type BuildParent =
  | { readonly nodeTemplateId: string }
  | { readonly image: string; readonly login: ImageLogin | undefined }

export type BuildEvent =
  | { readonly type: 'log'; readonly entry: BuildLogEntry }
  | { readonly type: 'done' }
  | { readonly type: 'failed'; readonly failure: BuildFailure }

/** An archive that steps of builds of one team name by its hash. */
export interface BuildFiles {
  readonly teamId: string
  readonly hash: string
}
