import manifest from '../package.json' with { type: 'json' }
import { apiCommand } from './commands/api.ts'
import { backupCommand } from './commands/backup.ts'
import { completionCommand } from './commands/completion.ts'
import { doctorCommand } from './commands/doctor.ts'
import { downCommand } from './commands/down.ts'
import { logsCommand } from './commands/logs.ts'
import { restoreCommand } from './commands/restore.ts'
import { statusCommand } from './commands/status.ts'
import { upCommand } from './commands/up.ts'
import type { CliContext } from './context.ts'
import { CliCommand } from './declare/command.ts'

/**
 * Declares the commands. Of the command groups only the wanted ones get their subcommands: each group loads many
 * modules, and a short command spends most of its time on loading.
 */
export async function declareProgram(
  context: CliContext,
  isWanted: (group: CommandGroup) => boolean = () => true,
): Promise<CliCommand> {
  const program = new CliCommand('atoll')
    .description('Atoll, a sandbox cloud: runs untrusted code in isolated sandboxes.')
    .version(manifest.version, '-V, --version', 'print the version')
    .enablePositionalOptions()
    .showHelpAfterError('(add --help for usage)')
    .details(programHelp)
    .addCommand(upCommand(context))
    .addCommand(downCommand(context))
    .addCommand(statusCommand(context))
    .addCommand(doctorCommand(context))
    .addCommand(logsCommand(context))
    .addCommand(backupCommand(context))
    .addCommand(restoreCommand(context))
    .addCommand(apiCommand(context))
  for (const group of groups) {
    const declared = new CliCommand(group.name).description(group.description)
    declared.enablePositionalOptions()
    if (group.alias !== undefined) declared.alias(group.alias)
    const subcommands = isWanted(group) ? (await group.load())(context) : []
    for (const subcommand of subcommands) declared.addCommand(subcommand)
    program.addCommand(declared)
  }
  return program.addCommand(completionCommand(context))
}

/** Selects the groups that a command line can reach. A completion script covers all of them. */
export function isNamedIn(args: readonly string[]): (group: CommandGroup) => boolean {
  return ({ name, alias }) =>
    args.some((word) => word === name || word === alias || word === 'completion')
}

interface CommandGroup {
  readonly name: string
  readonly alias?: string
  readonly description: string
  load(): Promise<(context: CliContext) => readonly CliCommand[]>
}

const groups: readonly CommandGroup[] = [
  {
    name: 'service',
    description: 'run the server as a systemd service of this machine',
    load: async () => (await import('./commands/service.ts')).serviceCommands,
  },
  {
    name: 'sandbox',
    alias: 'sb',
    description: 'create, list, use, pause, fork and kill sandboxes',
    load: async () => (await import('./commands/sandbox.ts')).sandboxCommands,
  },
  {
    name: 'snapshot',
    description: 'create, list, tag and delete snapshots of sandboxes',
    load: async () => (await import('./commands/snapshot.ts')).snapshotCommands,
  },
  {
    name: 'template',
    alias: 'tpl',
    description: 'build, list, tag, install and delete templates',
    load: async () => (await import('./commands/template.ts')).templateCommands,
  },
  {
    name: 'secret',
    description: 'manage secrets, which header rules of sandboxes use',
    load: async () => (await import('./commands/secret.ts')).secretCommands,
  },
  {
    name: 'key',
    description: 'manage the API keys of your team',
    load: async () => (await import('./commands/key.ts')).keyCommands,
  },
  {
    name: 'node',
    description: 'manage the machines that run sandboxes, or run one for a fleet',
    load: async () => (await import('./commands/node.ts')).nodeCommands,
  },
  {
    name: 'encryption',
    description: 'manage the keys that encrypt secrets on this machine',
    load: async () => (await import('./commands/encryption.ts')).encryptionCommands,
  },
  {
    name: 'edge',
    description: 'run an edge of a fleet, which takes sandbox traffic',
    load: async () => (await import('./commands/edge.ts')).edgeCommands,
  },
  {
    name: 'tls',
    description: 'manage the certificates of the server on this machine',
    load: async () => (await import('./commands/tls.ts')).tlsCommands,
  },
]

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
