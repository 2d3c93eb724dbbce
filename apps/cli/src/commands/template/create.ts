import { collectText } from '../../arguments.ts'
import type { BuildSettings } from '../../build/plan.ts'
import { BuildResult, openBuildView, reportBuild } from '../../build/report.ts'
import { openPlatform } from '../../context.ts'
import type { CliContext } from '../../context.ts'
import { CliCommand } from '../../declare/command.ts'
import { withBuildOptions } from './build-options.ts'

export function createCommand(context: CliContext): CliCommand {
  const command = new CliCommand('create')
    .description('create a template from an image or another template, without a Dockerfile')
    .argument('<name[:tag]>', 'name of the template; a known name is built again')
    .option('--from <reference>', 'template, or image of a registry', 'base')
    .option('-r, --run <command>', 'shell command to run as root; repeatable', collectText)
  return withBuildOptions(command)
    .json(BuildResult, 'print the result as JSON; the log goes to stderr')
    .details(help)
    .action((name: string, options: CreateOptions) => create(context, { ...options, name }))
}

interface CreateOptions extends Omit<BuildSettings, 'name'> {
  readonly from: string
  readonly run?: readonly string[]
  readonly json?: boolean
}

async function create(context: CliContext, options: CreateOptions & BuildSettings) {
  const { planCommandBuild } = await import('../../build/plan.ts')
  const { runBuild } = await import('../../build/run-build.ts')
  const { platform } = await openPlatform(context)
  const plan = await planCommandBuild(platform, options)
  const finished = await runBuild(platform, plan, openBuildView(context, plan.steps.length))
  reportBuild(context, finished, { steps: plan.steps, json: options.json })
}

const help = `
Examples:
  atoll template create tools --run 'apt-get update' --run 'apt-get install -y figlet'
  atoll template create python --from python:3.12 --memory 2048`
