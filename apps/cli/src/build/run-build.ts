import { setTimeout as sleep } from 'node:timers/promises'
import type { PlatformClient } from '@atoll/client/platform'
import type {
  BuildRecipe,
  BuildReference,
  NewBuild,
  RequestedBuild,
} from '@atoll/client/platform/builds'
import type { BuildInfo, BuildLogEntry } from '@atoll/client/replies'
import type { ProgressView } from '@atoll/server/progress'
import { counted } from '../output/progress.ts'
import type { Archive } from './archive.ts'

export interface PlannedBuild {
  readonly request: NewBuild
  readonly recipe: Omit<BuildRecipe, 'steps'>
  readonly steps: readonly PlannedStep[]
}

export interface PlannedStep {
  readonly type: string
  readonly args: readonly string[]
  readonly archive?: Archive | undefined
  /** Instruction as the user wrote it. */
  readonly title: string
}

export interface BuildView {
  readonly progress: ProgressView
  /** Called for every entry of the build log, in order. */
  onLog(entry: BuildLogEntry): void
}

export interface FinishedBuild {
  readonly requested: RequestedBuild
  readonly info: BuildInfo
}

/** Requests the build, uploads missing files, starts it, and follows its log to the end. */
export async function runBuild(
  platform: PlatformClient,
  { request, recipe, steps }: PlannedBuild,
  view: BuildView,
): Promise<FinishedBuild> {
  const requested = await platform.requestBuild(request)
  try {
    for (const step of steps) {
      if (step.archive) await upload(platform, requested.templateID, step.archive, step.title, view)
    }
    const sent = steps.map(({ type, args, archive }) => ({
      ...{ type, args: [...args] },
      ...(archive && { filesHash: archive.hash }),
    }))
    await platform.startBuild(requested, { ...recipe, steps: sent })
    return { requested, info: await followBuild(platform, requested, view.onLog) }
  } finally {
    view.progress.clear()
  }
}

async function upload(
  platform: PlatformClient,
  templateId: string,
  archive: Archive,
  title: string,
  { progress }: BuildView,
): Promise<void> {
  const { present, url } = await platform.findBuildFiles(templateId, archive.hash)
  if (present) return
  const { sizeBytes } = archive
  const report = (bytes: number) => progress.report(`uploading for ${title}`, bytes / sizeBytes)
  await platform.uploadBuildFiles(url, { chunks: counted(archive.chunks(), report), sizeBytes })
}

const pollIntervalMs = 500
/** Entries per answer of the server. */
const pageSize = 100

/** Passes on the log from its start and returns the final status. */
export async function followBuild(
  platform: PlatformClient,
  build: BuildReference,
  onLog: (entry: BuildLogEntry) => void,
): Promise<BuildInfo> {
  let offset = 0
  for (;;) {
    const info = await platform.getBuildStatus(build, offset)
    for (const entry of info.logEntries) onLog(entry)
    offset += info.logEntries.length
    if (info.logEntries.length >= pageSize) continue
    if (info.status === 'ready' || info.status === 'error') return info
    await sleep(pollIntervalMs)
  }
}
