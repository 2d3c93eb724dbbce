import { Command } from 'commander'
import type { CliContext } from '../context.ts'

export function upCommand(context: CliContext): Command {
  return new Command('up')
    .description('start the server: API, edge and node in one process')
    .addHelpText('after', help)
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
