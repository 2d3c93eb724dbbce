import type { CliContext } from '../context.ts'
import { CliCommand } from '../declare/command.ts'

export function upCommand(context: CliContext): CliCommand {
  return new CliCommand('up')
    .description('start the server: API, edge and node in one process')
    .details(help)
    .action(() => up(context))
}

/** Imports the server lazily, so that other commands start fast. */
async function up({ config }: CliContext) {
  const { runServer } = await import('@atoll/server/main')
  await runServer(config.environment)
}

const help = `
Prints the URLs, the API key and the settings for the E2B SDK. Ctrl-C stops the server and
leaves the sandboxes running; the next start adopts them. \`atoll down\` stops the sandboxes
too.`
