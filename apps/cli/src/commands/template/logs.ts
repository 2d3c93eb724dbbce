import type { BuildLogEntry } from '@atoll/client/replies'
import * as progress from '@atoll/contracts/builds/progress'
import { Fault } from '@atoll/kit/fault'
import { z } from 'zod'
import { openPlatform, printJson, printLine } from '../../context.ts'
import type { CliContext } from '../../context.ts'
import { CliCommand } from '../../declare/command.ts'

export function logsCommand(context: CliContext): CliCommand {
  return new CliCommand('logs')
    .description('print the log of a build; waits for the end of a build that runs')
    .argument('<template>', 'template ID or name')
    .argument('[build]', 'build ID (default: the newest build)')
    .json(z.array(progress.BuildLogEntry), 'print the entries as JSON')
    .details('The exit code is 1 if the build failed.')
    .action((template: string, build: string | undefined, options: { readonly json?: boolean }) =>
      logs(context, { template, build, ...options }),
    )
}

interface LogsRequest {
  readonly template: string
  readonly build: string | undefined
  readonly json?: boolean
}

async function logs(context: CliContext, { template, build, json }: LogsRequest) {
  const { formatEntry } = await import('../../build/report.ts')
  const { followBuild } = await import('../../build/run-build.ts')
  const { stdout } = context
  const { platform } = await openPlatform(context)
  const { templateID, builds } = await platform.getTemplate(template)
  const found = build === undefined ? builds[0] : builds.find(({ buildID }) => buildID === build)
  if (!found) throw noBuild(template, build)
  const entries: BuildLogEntry[] = []
  const onLog = (entry: BuildLogEntry) => {
    if (json) entries.push(entry)
    else printLine(stdout, formatEntry(entry))
  }
  // A build that was requested but never started has no end to wait for.
  if (found.status === 'waiting') throw notStarted(found.buildID)
  const info = await followBuild(platform, { templateID, buildID: found.buildID }, onLog)
  if (json) printJson(stdout, entries)
  if (info.reason) printLine(context.stderr, `The build failed: ${info.reason.message}`)
  if (info.status === 'error') context.exitWith(1)
}

function notStarted(build: string): Fault {
  const message = `The build ${build} was requested, but has not started`
  return new Fault('conflict', 'build_not_started', message)
}

function noBuild(template: string, build: string | undefined): Fault {
  const which = build === undefined ? 'a build' : `the build ${build}`
  return new Fault('not_found', 'no_build', `The template ${template} does not have ${which}`)
}
