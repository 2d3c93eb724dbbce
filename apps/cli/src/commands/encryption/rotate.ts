import { KeyRotation } from '@atoll/contracts/encryption'
import type { KeyRotationReply } from '@atoll/client/replies'
import { printJson, printLine } from '../../context.ts'
import type { CliContext } from '../../context.ts'
import { CliCommand } from '../../declare/command.ts'
import { openAsOperator } from '../node/open-nodes.ts'

export function rotateCommand(context: CliContext): CliCommand {
  return new CliCommand('rotate')
    .description('replace the encryption key and encrypt all secrets again; sandboxes keep running')
    .json(KeyRotation)
    .details(help)
    .action((options: { readonly json?: boolean }) => rotate(context, options))
}

async function rotate(context: CliContext, { json }: { readonly json?: boolean }) {
  const platform = await openAsOperator(context, 'Only operators replace encryption keys')
  const done = await platform.rotateEncryptionKey()
  if (json) return printJson(context.stdout, done)
  printLine(context.stdout, describe(done))
  if (done.keptKeyIDs.length === 0) return
  printLine(
    context.stderr,
    `${done.unreadable} records could not be read, so older keys stay in the key file: ${done.keptKeyIDs.join(', ')}. The server log names those of the node.`,
  )
}

function describe({ currentKeyID, isNewKey, resealed }: KeyRotationReply): string {
  const key = isNewKey ? `New key ${currentKeyID}` : `Completed the change to key ${currentKeyID}`
  return `${key}: ${resealed} records were encrypted again.`
}

const help = `
Adds a new key to the key file of the server, encrypts everything again and drops the old key. Run
the command again if it is interrupted: both keys work until it has finished. Backups from before
need the old key. Needs ATOLL_ADMIN_TOKEN.`
