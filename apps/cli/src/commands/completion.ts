import { Argument } from 'commander'
import type { CliContext } from '../context.ts'
import { CliCommand } from '../declare/command.ts'
import { shells } from '../declare/completion.ts'
import type { Shell } from '../declare/completion.ts'

export function completionCommand(context: CliContext): CliCommand {
  return new CliCommand('completion')
    .description('print a script that completes commands and options in your shell')
    .addArgument(new Argument('<shell>', 'shell to complete in').choices(shells))
    .details(help)
    .action(async (shell: Shell, _options: object, command: CliCommand) => {
      const { completionScript } = await import('../declare/completion.ts')
      if (command.parent instanceof CliCommand) {
        context.stdout.write(completionScript(command.parent, shell))
      }
    })
}

const help = `
Example, for ~/.bashrc:
  source <(atoll completion bash)`
