import { Command } from 'commander'
import { collectPair, parseDuration } from '../../arguments.ts'
import { openPlatform, printJson, printLine } from '../../context.ts'
import type { CliContext } from '../../context.ts'

export function createCommand(context: CliContext): Command {
  return new Command('create')
    .description('create a sandbox and print its id')
    .argument('[template]', 'a template, or a snapshot by id or name', 'base')
    .option('-t, --timeout <duration>', 'how long it lives: 300, 90s, 5m, 2h', parseDuration)
    .option('-m, --metadata <name=value>', 'a note kept with it; may be repeated', collectPair)
    .option(
      '-e, --env <name=value>',
      'a variable of all its processes; may be repeated',
      collectPair,
    )
    .option('--auto-pause', 'at the end of its time pause it instead of ending it')
    .option('--json', 'print all that the server tells, the access token included')
    .addHelpText('after', help)
    .action((template: string, options: CreateOptions) => create(context, template, options))
}

interface CreateOptions {
  readonly timeout?: number
  readonly metadata?: Record<string, string>
  readonly env?: Record<string, string>
  readonly autoPause?: boolean
  readonly json?: boolean
}

async function create(context: CliContext, template: string, options: CreateOptions) {
  const { platform } = await openPlatform(context)
  const sandbox = await platform.createSandbox({
    templateId: template,
    timeoutSeconds: options.timeout,
    metadata: options.metadata,
    envVars: options.env,
    autoPause: options.autoPause,
  })
  if (options.json) return printJson(context.stdout, sandbox)
  printLine(context.stdout, sandbox.sandboxID)
  if (context.stdout.isTTY) {
    printLine(context.stderr, `Open a terminal in it: atoll sandbox shell ${sandbox.sandboxID}`)
  }
}

const help = `
Without --timeout the sandbox ends 5 minutes after its start. One that is made of a
snapshot goes on with the processes and files that the snapshot has.

Examples:
  id=$(atoll sandbox create --timeout 1h --metadata purpose=demo)
  atoll sandbox create base --env LANG=C.UTF-8 --json
  atoll sandbox create $(atoll snapshot create <id>)`
