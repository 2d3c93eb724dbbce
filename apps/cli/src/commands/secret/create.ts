import { Secret } from '@atoll/contracts/secrets'
import { collectPair } from '../../arguments.ts'
import { openPlatform, printJson, printLine } from '../../context.ts'
import type { CliContext } from '../../context.ts'
import { CliCommand } from '../../declare/command.ts'
import { readSecretValue } from './value.ts'

export function createCommand(context: CliContext): CliCommand {
  return new CliCommand('create')
    .description('store a secret and print its ID; no command can read the value again')
    .argument('<name>', 'name: letters, digits, _ and -')
    .option('-f, --from-file <file>', 'read the value from a file instead of stdin')
    .option('-m, --metadata <name=value>', 'metadata to store with it; repeatable', collectPair)
    .json(Secret)
    .details(help)
    .action((name: string, options: CreateOptions) => create(context, name, options))
}

interface CreateOptions {
  readonly fromFile?: string
  readonly metadata?: Record<string, string>
  readonly json?: boolean
}

async function create(context: CliContext, name: string, options: CreateOptions) {
  const { platform } = await openPlatform(context)
  const value = await readSecretValue(context, options.fromFile)
  const secret = await platform.createSecret({ name, value, metadata: options.metadata })
  if (options.json) return printJson(context.stdout, secret)
  printLine(context.stdout, secret.secretID)
}

const help = `
The value comes from stdin or a file, never from the command line, which other users of the
machine can see. One line break at its end is removed. On a terminal the command asks for the
value and does not show it. Header rules refer to it as \${e2b.secrets.NAME}.

Examples:
  atoll secret create openai-key
  printenv OPENAI_API_KEY | atoll secret create openai-key
  atoll secret create openai-key --from-file key.txt --metadata owner=me`
