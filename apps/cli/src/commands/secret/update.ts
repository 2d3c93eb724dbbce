import { Secret } from '@atoll/contracts/secrets'
import { openPlatform, printJson, printLine } from '../../context.ts'
import type { CliContext } from '../../context.ts'
import { CliCommand } from '../../declare/command.ts'
import { readSecretValue } from './value.ts'

export function updateCommand(context: CliContext): CliCommand {
  return new CliCommand('update')
    .description('replace the value of a secret, in running sandboxes too')
    .argument('<secret>', 'secret ID or name')
    .option('-f, --from-file <file>', 'read the value from a file instead of stdin')
    .json(Secret)
    .action((secret: string, options: UpdateOptions) => update(context, secret, options))
}

interface UpdateOptions {
  readonly fromFile?: string
  readonly json?: boolean
}

async function update(context: CliContext, reference: string, { fromFile, json }: UpdateOptions) {
  const { platform } = await openPlatform(context)
  const value = await readSecretValue(context, fromFile)
  const secret = await platform.updateSecret(reference, { value })
  if (json) return printJson(context.stdout, secret)
  printLine(context.stdout, `updated ${secret.name} to version ${secret.currentVersion}`)
}
