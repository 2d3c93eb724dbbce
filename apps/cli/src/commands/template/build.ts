import { collectPair } from '../../arguments.ts'
import type { DirectoryBuild } from '../../build/plan.ts'
import { BuildResult, openBuildView, reportBuild } from '../../build/report.ts'
import { openPlatform } from '../../context.ts'
import type { CliContext } from '../../context.ts'
import { CliCommand } from '../../declare/command.ts'
import { withBuildOptions } from './build-options.ts'

export function buildCommand(context: CliContext): CliCommand {
  const command = new CliCommand('build')
    .description('build a template from a directory with a Dockerfile and print its ID')
    .argument('[directory]', 'build directory, whose files COPY can take', '.')
    .requiredOption('-n, --name <name[:tag]>', 'name of the template; a known name is built again')
    .option('-f, --file <file>', 'Dockerfile (default: Dockerfile in the directory)')
    .option('--build-arg <name=value>', 'value of an ARG; repeatable', collectPair)
  return withBuildOptions(command)
    .json(BuildResult, 'print the result as JSON; the log goes to stderr')
    .details(help)
    .action((directory: string, options: BuildOptions) => build(context, { ...options, directory }))
}

type BuildOptions = Omit<DirectoryBuild, 'directory'> & { readonly json?: boolean }

async function build(context: CliContext, options: DirectoryBuild & BuildOptions) {
  const { planDirectoryBuild } = await import('../../build/plan.ts')
  const { runBuild } = await import('../../build/run-build.ts')
  const { platform } = await openPlatform(context)
  const plan = await planDirectoryBuild(platform, options)
  const finished = await runBuild(platform, plan, openBuildView(context, plan.steps.length))
  reportBuild(context, finished, { steps: plan.steps, json: options.json })
}

const help = `
FROM names a template that you may use, such as base, or else an image of a registry. Steps
on base and on images run as root in /; sandboxes get the user \`user\` and /home/user unless
USER and WORKDIR name others. CMD or ENTRYPOINT becomes the start command. COPY takes files
of the directory that .dockerignore does not exclude. Not supported: several stages, COPY
--from, RUN --mount, here-documents, ADD of URLs and archives, SHELL, ONBUILD.

Unchanged files are not uploaded again, and unchanged steps come from the cache. The log
goes to stderr. The exit code is 1 if the build fails. Ctrl-C stops waiting, not the build.

Examples:
  atoll template build . --name tools
  atoll template build ./app --name app:v2 --tag latest --cpu 4 --memory 4096
  atoll template build . --name web --start-cmd 'npm start' --ready-cmd 'curl -s localhost:3000'`
