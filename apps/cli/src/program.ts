import manifest from '../package.json' with { type: 'json' }
import { doctorCommand } from './commands/doctor.ts'
import { completionCommand } from './commands/completion.ts'
import { downCommand } from './commands/down.ts'
import { keyCommand } from './commands/key.ts'
import { sandboxCommand } from './commands/sandbox.ts'
import { secretCommand } from './commands/secret.ts'
import { snapshotCommand } from './commands/snapshot.ts'
import { statusCommand } from './commands/status.ts'
import { templateCommand } from './commands/template.ts'
import { tlsCommand } from './commands/tls.ts'
import { upCommand } from './commands/up.ts'
import type { CliContext } from './context.ts'
import { CliCommand } from './declare/command.ts'

/** Declares all commands. Only running one needs the context. */
export function declareProgram(context: CliContext): CliCommand {
  const program = new CliCommand('atoll')
    .description('Atoll, a sandbox cloud: runs untrusted code in isolated sandboxes.')
    .version(manifest.version, '-V, --version', 'print the version')
    .enablePositionalOptions()
    .showHelpAfterError('(add --help for usage)')
    .details(programHelp)
  const commands = [
    upCommand(context),
    downCommand(context),
    statusCommand(context),
    doctorCommand(context),
    sandboxCommand(context),
    snapshotCommand(context),
    templateCommand(context),
    secretCommand(context),
    keyCommand(context),
    tlsCommand(context),
    completionCommand(context),
  ]
  for (const command of commands) program.addCommand(command)
  return program
}

const programHelp = `
First steps:
  atoll up                          start the server; prints its URLs and API key
  atoll sandbox create              create a sandbox; prints its ID
  atoll sandbox exec <id> 'uname'   run a command in the sandbox
  atoll sandbox shell <id>          open a terminal in the sandbox
  atoll sandbox pause <id>          pause the sandbox; \`resume\` continues it
  atoll sandbox cp <file> <id>:.    copy a file into the sandbox; folders and back work too
  atoll snapshot create <id>        save a snapshot, to create more sandboxes from
  atoll template build --name <n>   build a template from the Dockerfile of this directory
  atoll sandbox kill <id>           end the sandbox

Environment:
  ATOLL_API_URL, E2B_API_URL          URL of the server (default: http://localhost:3000)
  ATOLL_SANDBOX_URL, E2B_SANDBOX_URL  URL for sandbox traffic (default: the server URL)
  ATOLL_API_KEY, E2B_API_KEY          API key (default for root: the key of the local server)
  ATOLL_DOMAIN, E2B_DOMAIN            domain of host names of sandboxes (default: that of the URL)
  ATOLL_DATA_DIR                      data directory of the local server (/var/lib/atoll)

Exit codes: 0 success, 1 failure, 2 usage error. \`sandbox exec\` and \`sandbox shell\`
return the exit code of the command.`
