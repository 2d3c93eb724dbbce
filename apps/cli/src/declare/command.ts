import { Command } from 'commander'
import type { z } from 'zod'

/**
 * Declaration of one command. The help, the shell completion and the page `docs/cli.md` all come from it. Placeholders
 * decide about completion: `<directory>` and `<file>` complete local paths, others only their choices.
 */
export class CliCommand extends Command {
  #details = ''
  #shape: z.ZodType | undefined

  /** Text below the options: behaviour that the option texts do not say, then examples. */
  details(text: string): this {
    this.#details = text.trim()
    return this.addHelpText('after', `\n${this.#details}`)
  }

  get detailsText(): string {
    return this.#details
  }

  /** Adds `--json`. The schema is the promise about its output. */
  json(shape: z.ZodType, description = 'print as JSON'): this {
    this.#shape = shape
    return this.option('--json', description)
  }

  get jsonShape(): z.ZodType | undefined {
    return this.#shape
  }

  /** Takes declarations only, so that no command is missing in the completion and on the page. */
  override addCommand(command: CliCommand): this {
    return super.addCommand(command)
  }

  get children(): readonly CliCommand[] {
    return this.commands.filter((command) => command instanceof CliCommand)
  }

  /** Words before the arguments, such as `atoll sandbox list`. */
  get path(): string {
    const parent = this.parent instanceof CliCommand ? `${this.parent.path} ` : ''
    return `${parent}${this.name()}`
  }
}

/** Returns the command and everything below it, in the order of the help. */
export function withDescendants(command: CliCommand): CliCommand[] {
  return [command, ...command.children.flatMap(withDescendants)]
}
