import type { BuildInfo, BuildLogEntry } from '@atoll/client/replies'
import { BuildStatus } from '@atoll/contracts/templates/manage'
import { Fault } from '@atoll/kit/fault'
import { z } from 'zod'
import { printJson, printLine } from '../context.ts'
import type { CliContext } from '../context.ts'
import { openProgress } from '../output/progress.ts'
import { plainOutput } from '../output/visible-text.ts'
import type { BuildView, FinishedBuild, PlannedStep } from './run-build.ts'

/** Output of `template build --json` and `template create --json`. */
export const BuildResult = z
  .object({
    templateID: z.string(),
    buildID: z.uuid(),
    names: z.array(z.string()),
    tags: z.array(z.string()).describe('Tags that point to this build once it is ready'),
    status: BuildStatus,
    reason: z
      .object({ message: z.string(), step: z.string().optional() })
      .optional()
      .describe('Why the build failed'),
  })
  .meta({ id: 'BuildResult' })

/** Prints the log to stderr, with a progress bar below it on a terminal. */
export function openBuildView({ stderr }: CliContext, stepCount: number): BuildView {
  const progress = openProgress(stderr)
  return {
    progress,
    onLog(entry) {
      progress.clear()
      printLine(stderr, formatEntry(entry))
      const step = Number(entry.step ?? Number.NaN)
      const done = entry.step === 'finalize' ? stepCount : step - 1
      if (stderr.isTTY && stepCount > 0 && done >= 0) {
        progress.report(
          `building, step ${Math.min(done + 1, stepCount)} of ${stepCount}`,
          done / stepCount,
        )
      }
    },
  }
}

export function formatEntry({ level, message }: BuildLogEntry): string {
  const mark = level === 'warn' || level === 'error' ? `${level}: ` : ''
  return `${mark}${plainOutput(message).trimEnd()}`
}

/** Prints the result. Throws if the build failed, with the step that failed. */
export function reportBuild(
  { stdout, stderr }: CliContext,
  { requested, info }: FinishedBuild,
  options: { readonly steps: readonly PlannedStep[]; readonly json: boolean | undefined },
): void {
  const { templateID, buildID, names, tags } = requested
  const { status, reason } = info
  const shown = reason && { message: reason.message, step: reason.step }
  if (options.json) printJson(stdout, { templateID, buildID, names, tags, status, reason: shown })
  if (status !== 'ready') throw buildFailed(info, options.steps)
  if (options.json) return
  printLine(stdout, templateID)
  if (stdout.isTTY) {
    printLine(stderr, `Create a sandbox from it: atoll sandbox create ${names[0] ?? templateID}`)
  }
}

function buildFailed({ reason }: BuildInfo, steps: readonly PlannedStep[]): Fault {
  const step = Number(reason?.step ?? Number.NaN)
  const title = steps[step - 1]?.title
  const place =
    title === undefined ? (reason?.step ?? '') : `step ${step} of ${steps.length}, ${title}`
  const message = `The build failed${place && ` at ${place}`}: ${reason?.message ?? 'the server gave no reason'}`
  return new Fault('invalid', 'build_failed', message)
}
