import { Fault } from '@atoll/kit/fault'
import type { TeamLimits } from './limits.ts'
import type { Position } from './sandbox-store.ts'
import type { BuildStatus, Resources, TemplateName } from './template.ts'

/**
 * One making of a template. It waits until somebody starts it, is carried out by one server process, which is its holder
 * meanwhile, and ends as ready or with the reason why not.
 */
export interface Build {
  readonly id: string
  readonly templateId: string
  /** Undefined: its template belongs to the installation. */
  readonly teamId: string | undefined
  readonly status: BuildStatus
  /** The disk is the least that is wanted until it is ready. */
  readonly resources: Resources
  /** Undefined: that of the node. */
  readonly envdVersion: string | undefined
  /** Why it failed. */
  readonly failure: BuildFailure | undefined
  readonly createdAt: Date
  readonly updatedAt: Date
  readonly finishedAt: Date | undefined
}

export interface BuildFailure {
  /** For whoever wrote the steps. */
  readonly message: string
  /** "base", the number of a step counted from one, or "finalize"; undefined: none of them is to blame. */
  readonly step: string | undefined
}

export interface WantedBuild {
  readonly teamId: string
  readonly userId: string | undefined
  /** Which template, as its id or the name that it has or gets; undefined: a new one without a name. */
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
   * Writes it down as waiting, with its template where there is none yet; those of the same tag that wait fail. `check`
   * hears how many others of the team wait or are under way, and may throw. Faults: `conflict` when the name means
   * something else, `forbidden` when it is another team's, `not_found` when there is no such template any more.
   */
  request(wanted: WantedBuild, check: (others: number) => void, now: Date): Promise<RequestedBuild>
  find(id: string): Promise<Build | undefined>
  /** Newest first. */
  list(
    templateId: string,
    page: { readonly limit: number; readonly after: Position | undefined },
  ): Promise<Build[]>
  /** False when it does not wait. Those of the same tag that are under way fail, but stay held. */
  begin(
    id: string,
    by: { readonly holder: string; readonly nodeTemplateId: string },
    now: Date,
  ): Promise<boolean>
  /** By its holder, who lets go of it. False when it had failed meanwhile, or is gone with its template. */
  finish(id: string, holder: string, outcome: BuildOutcome, now: Date): Promise<boolean>
  /** Those that a process is at, or was when it died. */
  listHeld(): Promise<HeldBuild[]>
  /** Fails all that have been waiting since before `time`. */
  failWaiting(time: Date, failure: BuildFailure, now: Date): Promise<void>
  /** Which of these templates of the node belong to a build that is ready or held. */
  known(nodeTemplateIds: readonly string[]): Promise<ReadonlySet<string>>
}

export const longestWaitMs = 40 * 60 * 1000
export const longestBuildMs = 60 * 60 * 1000

export const failures = {
  superseded: fail('A newer build with the same tag was asked for before this one was started'),
  cancelled: fail('Cancelled: a newer build with the same tag was started'),
  expired: fail('The build was not started within 40 minutes: ask for it again'),
  abandoned: fail('The server was restarted during the build: build it again'),
  deleted: fail('The template was deleted during the build'),
  tooLong: fail('The build took longer than an hour: make its steps shorter'),
} as const satisfies Record<string, BuildFailure>

function fail(message: string): BuildFailure {
  return { message, step: undefined }
}

export function tooManyBuilds({ concurrentBuilds }: TeamLimits): Fault {
  return new Fault(
    'exhausted',
    'concurrent_builds_exceeded',
    `The team has ${concurrentBuilds} builds waiting or under way already, as many as it may at a time: wait until one is over`,
  )
}
