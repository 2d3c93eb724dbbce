import { Fault } from '@atoll/kit/fault'
import type { Build, BuildFailure, BuildStore } from '../../domain/builds/build.ts'
import type { BuildLogEntry, BuildLogStore } from '../../domain/builds/build-log.ts'
import type { LogLevel } from '../../domain/log.ts'
import { parseReference } from '../../domain/template.ts'
import type { TemplateStore } from '../../domain/template.ts'

/** Status and logs of a team's builds. */
export interface BuildProgress {
  status(of: BuildOwner, query: StatusQuery): Promise<BuildStatusView>
  logs(of: BuildOwner, query: LogsQuery): Promise<BuildLogEntry[]>
}

export interface BuildOwner {
  readonly teamId: string
  readonly templateId: string
  readonly buildId: string
}

export interface StatusQuery {
  readonly offset: number
  readonly limit: number
  readonly level: LogLevel | undefined
}

export interface LogsQuery {
  readonly cursorMs: number | undefined
  readonly direction: 'forward' | 'backward'
  readonly limit: number
  readonly level: LogLevel | undefined
}

export interface BuildStatusView {
  readonly build: Build
  readonly entries: readonly BuildLogEntry[]
  readonly reason: (BuildFailure & { readonly entries: readonly BuildLogEntry[] }) | undefined
}

const maxReasonEntries = 100

export function createBuildProgress(ports: {
  readonly builds: BuildStore
  readonly logs: BuildLogStore
  readonly templates: Pick<TemplateStore, 'locate'>
}): BuildProgress {
  const { builds, logs } = ports

  const findBuild = async ({ teamId, templateId, buildId }: BuildOwner): Promise<Build> => {
    const reference = parseReference(templateId)
    const build = await builds.find(buildId)
    if (build && build.teamId !== teamId) {
      throw new Fault(
        'forbidden',
        'build_forbidden',
        `Build ${buildId} does not belong to your team`,
      )
    }
    const template = await ports.templates.locate(reference, teamId)
    if (build && template?.id === build.templateId) return build
    // Clients expect 400 here, not 404.
    const message = `There is no build ${buildId} of template ${templateId}`
    throw new Fault('invalid', 'build_not_found', message)
  }
  const readReason = async ({ id, failure }: Build): Promise<BuildStatusView['reason']> => {
    if (!failure) return undefined
    const { step } = failure
    const query = { step, minLevel: 'warn', newestFirst: true, limit: maxReasonEntries } as const
    const entries = step === undefined ? [] : await logs.read(id, query)
    return { ...failure, entries: entries.toReversed() }
  }

  return {
    async status(of, { offset, limit, level: minLevel }) {
      // Read the status before the entries: a finished build has written its whole log.
      const build = await findBuild(of)
      const entries = await logs.read(build.id, { offset, limit, minLevel })
      return { build, entries, reason: await readReason(build) }
    },
    async logs(of, { cursorMs, direction, limit, level: minLevel }) {
      const build = await findBuild(of)
      const isForward = direction === 'forward'
      const cursor = cursorMs === undefined ? undefined : toTime(cursorMs)
      const range = isForward ? { from: cursor } : { before: cursor }
      return logs.read(build.id, { ...range, newestFirst: !isForward, limit, minLevel })
    },
  }
}

/** Latest time that a `Date` can hold. */
const maxDateMs = 8.64e15

function toTime(ms: number): Date {
  return new Date(Math.min(ms, maxDateMs))
}
