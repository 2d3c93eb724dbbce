import { Fault } from '@atoll/kit/fault'
import type { TeamLimits } from '../teams/limits.ts'
import type { Position } from '../paging.ts'
import type { BuildStatus, Resources, TemplateName } from '../template.ts'

/**
 * Build of a template. Waits until a client starts the build, runs in one server process (the holder), and ends as
 * ready or failed.
 */
export interface Build {
  readonly id: string
  readonly templateId: string
  /** Undefined if the template belongs to the installation. */
  readonly teamId: string | undefined
  readonly status: BuildStatus
  /** `diskSizeMb` is the requested minimum until the build is ready. */
  readonly resources: Resources
  /** Undefined means the envd version of the node. */
  readonly envdVersion: string | undefined
  readonly failure: BuildFailure | undefined
  readonly createdAt: Date
  readonly updatedAt: Date
  readonly finishedAt: Date | undefined
}

export interface BuildFailure {
  /** Shown to the author of the steps. */
  readonly message: string
  /** "base", the number of a step (the first is 1), or "finalize". Undefined if no step is to blame. */
  readonly step: string | undefined
}

export interface WantedBuild {
  readonly teamId: string
  readonly userId: string | undefined
  /**
   * Template to build, by ID or by name; an unknown name creates a template. Undefined creates a template without a
   * name.
   */
  readonly of: { readonly templateId: string } | TemplateName | undefined
  readonly tags: readonly string[]
  readonly resources: Resources
}

export interface RequestedBuild {
  readonly id: string
  readonly templateId: string
  readonly public: boolean
  readonly names: readonly TemplateName[]
}

export interface HeldBuild {
  readonly id: string
  readonly holder: string
  readonly status: BuildStatus
}

export type BuildOutcome = { readonly resources: Resources } | { readonly failure: BuildFailure }

export interface BuildStore {
  /**
   * Inserts a waiting build, and its template if there is none yet; waiting builds with the same tag fail. `check`
   * receives the number of other waiting or running builds of the team, without those of the same tag, and may throw.
   * Faults: `conflict` when the name belongs to a snapshot or equals a template ID, `forbidden` when another team owns
   * the name, `not_found` when the template was deleted.
   */
  request(wanted: WantedBuild, check: (others: number) => void, now: Date): Promise<RequestedBuild>
  find(id: string): Promise<Build | undefined>
  /** Newest first. */
  list(
    templateId: string,
    page: { readonly limit: number; readonly after: Position | undefined },
  ): Promise<Build[]>
  /** Returns false when the build is not waiting. Running builds with the same tag fail, but keep their holder. */
  begin(
    id: string,
    by: { readonly holder: string; readonly nodeId: string; readonly nodeTemplateId: string },
    now: Date,
  ): Promise<boolean>
  /** Releases the build. Returns false when the build failed in the meantime, or was deleted with its template. */
  finish(id: string, holder: string, outcome: BuildOutcome, now: Date): Promise<boolean>
  /** Lists builds that have a holder, also when the holder has crashed. */
  listHeld(): Promise<HeldBuild[]>
  /** Fails all builds that were created before `time` and still wait. */
  failWaiting(time: Date, failure: BuildFailure, now: Date): Promise<void>
  /** Lists the IDs on the node of the team's ready and running builds. */
  listFiles(
    teamId: string,
  ): Promise<{ readonly nodeTemplateId: string; readonly nodeId: string | undefined }[]>
  /** Returns the node of the last build of a team that has files. */
  findHome(teamId: string): Promise<string | undefined>
  /**
   * Lists ready builds of teams that nothing has used since `time`: no tag selected them, no sandbox ran or was paused,
   * no snapshot has their files.
   */
  findUnused(time: Date, limit: number): Promise<string[]>
  /**
   * Releases the files and tags of a build but keeps its record. Returns false, and changes nothing, when the build has
   * been used since.
   */
  collect(id: string, times: { readonly unusedSince: Date; readonly now: Date }): Promise<boolean>
  /** Notes that the object store has the files of these builds. */
  markDurable(nodeTemplateIds: readonly string[]): Promise<void>
  /** Notes that the object store does not have the files of these builds, as far as they belong to the node that says so. */
  clearDurable(nodeId: string, nodeTemplateIds: readonly string[]): Promise<void>
  /** Returns the template IDs that belong to a ready or held build. */
  known(nodeTemplateIds: readonly string[]): Promise<ReadonlySet<string>>
}

export const maxWaitMs = 40 * 60 * 1000
export const maxBuildMs = 60 * 60 * 1000

export const failures = {
  superseded: fail('A newer build with the same tag was asked for before this one was started'),
  cancelled: fail('Cancelled: a newer build with the same tag was started'),
  expired: fail('The build was not started within 40 minutes: ask for it again'),
  abandoned: fail('The server was restarted during the build: build it again'),
  deleted: fail('The template was deleted during the build'),
  nodeGone: fail('The only node that had the files is gone for good: build it again'),
  tooLong: fail('The build took longer than an hour: make its steps shorter'),
} as const satisfies Record<string, BuildFailure>

function fail(message: string): BuildFailure {
  return { message, step: undefined }
}

export function tooManyBuilds({ concurrentBuilds }: TeamLimits): Fault {
  return new Fault(
    'exhausted',
    'concurrent_builds_exceeded',
    `Concurrent build limit of the team reached (${concurrentBuilds}): wait until a build ends, or ask an operator to raise the limit`,
  )
}
