import { collectText, parseCount } from '../../arguments.ts'
import type { CliCommand } from '../../declare/command.ts'

/** Adds the options that all builds have. */
export function withBuildOptions(command: CliCommand): CliCommand {
  return command
    .option('--tag <tag>', 'another tag of the build; repeatable', collectText)
    .option('--cpu <count>', 'CPU cores of a sandbox: 1 or an even number (default: 2)', parseCount)
    .option('--memory <MiB>', 'memory of a sandbox: an even number (default: 1024)', parseCount)
    .option('--start-cmd <command>', 'command that is already running in new sandboxes')
    .option('--ready-cmd <command>', 'command that succeeds once a sandbox is ready')
    .option('--no-cache', 'run all steps again, also unchanged ones')
}
