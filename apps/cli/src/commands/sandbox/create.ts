import { Sandbox } from '@atoll/contracts/sandboxes/views'
import { collectPair, parseDuration } from '../../arguments.ts'
import { openPlatform, printJson, printLine } from '../../context.ts'
import type { CliContext } from '../../context.ts'
import { CliCommand } from '../../declare/command.ts'

export function createCommand(context: CliContext): CliCommand {
  return new CliCommand('create')
    .description('create a sandbox and print its ID')
    .argument('[template]', 'template or snapshot, by ID or name', 'base')
    .option('-t, --timeout <duration>', 'lifetime: 300, 90s, 5m, 2h', parseDuration)
    .option(
      '-m, --metadata <name=value>',
      'metadata to store with the sandbox; repeatable',
      collectPair,
    )
    .option(
      '-e, --env <name=value>',
      'environment variable of all its processes; repeatable',
      collectPair,
    )
    .option('--auto-pause', 'pause the sandbox at its timeout instead of killing it')
    .json(Sandbox, 'print the sandbox as JSON, including its access token')
    .details(help)
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
    printLine(context.stderr, `Open a terminal: atoll sandbox shell ${sandbox.sandboxID}`)
  }
}

const help = `
The default lifetime is 5 minutes. A sandbox from a snapshot continues with the processes
and files of the snapshot.

Examples:
  id=$(atoll sandbox create --timeout 1h --metadata purpose=demo)
  atoll sandbox create base --env LANG=C.UTF-8 --json
  atoll sandbox create $(atoll snapshot create <id>)`
