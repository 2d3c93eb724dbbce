import { styleText } from 'node:util'
import { Command } from 'commander'
import manifest from '../package.json' with { type: 'json' }
import { doctorCommand } from './commands/doctor.ts'
import { downCommand } from './commands/down.ts'
import { keyCommand } from './commands/key.ts'
import { sandboxCommand } from './commands/sandbox.ts'
import { snapshotCommand } from './commands/snapshot.ts'
import { statusCommand } from './commands/status.ts'
import { templateCommand } from './commands/template.ts'
import { tlsCommand } from './commands/tls.ts'
import { upCommand } from './commands/up.ts'
import { loadConfig } from './config.ts'
import { printLine } from './context.ts'
import type { CliContext, Host } from './context.ts'
import { explain } from './failure.ts'

/** Runs one command line and returns the exit code. Never throws. */
export async function runCli(args: readonly string[], host: Host): Promise<number> {
  let exitCode = 0
  const exitWith = (code: number) => {
    exitCode = code
  }
  try {
    const { env, ...rest } = host
    const context = { ...rest, config: loadConfig(env), exitWith }
    await buildProgram(context).parseAsync(args, { from: 'user' })
    return exitCode
  } catch (thrown) {
    const failure = explain(thrown, args)
    if (failure.message) {
      const { stderr } = host
      printLine(stderr, `${styleText('red', 'error:', { stream: stderr })} ${failure.message}`)
      if (failure.hint)
        printLine(stderr, `${styleText('dim', 'hint:', { stream: stderr })} ${failure.hint}`)
    }
    return failure.exitCode
  }
}

function buildProgram(context: CliContext): Command {
  const program = new Command('atoll')
    .description('Atoll, a sandbox cloud: runs untrusted code in isolated sandboxes.')
    .version(manifest.version, '-V, --version', 'print the version')
    .enablePositionalOptions()
    .showHelpAfterError('(add --help for usage)')
    .addHelpText('after', programHelp)
  const commands = [
    upCommand(context),
    downCommand(context),
    statusCommand(context),
    doctorCommand(context),
    sandboxCommand(context),
    snapshotCommand(context),
    templateCommand(context),
    keyCommand(context),
    tlsCommand(context),
  ]
  for (const command of commands) program.addCommand(command)
  for (const command of withDescendants(program)) {
    command.exitOverride().configureOutput({
      writeOut: (text) => context.stdout.write(text),
      writeErr: (text) => context.stderr.write(text),
    })
  }
  return program
}

function withDescendants(command: Command): Command[] {
  return [command, ...command.commands.flatMap(withDescendants)]
}

const programHelp = `
First steps:
  atoll up                          start the server; prints its URLs and API key
  atoll sandbox create              create a sandbox; prints its ID
  atoll sandbox exec <id> 'uname'   run a command in the sandbox
  atoll sandbox shell <id>          open a terminal in the sandbox
  atoll sandbox pause <id>          pause the sandbox; \`resume\` continues it
  atoll snapshot create <id>        save a snapshot, to create more sandboxes from
  atoll sandbox kill <id>           end the sandbox

Environment:
  ATOLL_API_URL, E2B_API_URL          URL of the server (default: http://localhost:3000)
  ATOLL_SANDBOX_URL, E2B_SANDBOX_URL  URL for sandbox traffic (default: the server URL)
  ATOLL_API_KEY, E2B_API_KEY          API key (default for root: the key of the local server)
  ATOLL_DATA_DIR                      data directory of the local server (/var/lib/atoll)

Exit codes: 0 success, 1 failure, 2 usage error. \`sandbox exec\` and \`sandbox shell\`
return the exit code of the command.`
