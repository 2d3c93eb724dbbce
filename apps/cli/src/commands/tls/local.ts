import { printLine } from '../../context.ts'
import type { CliContext } from '../../context.ts'
import { CliCommand } from '../../declare/command.ts'

interface Options {
  readonly replace?: boolean
}

export function localCommand(context: CliContext): CliCommand {
  return new CliCommand('local')
    .description('create a local CA for ATOLL_DOMAIN, and print how to trust it')
    .option('--replace', 'create a new CA, although there is one; clients must trust it again')
    .details(help)
    .action((options: Options) => createCa(context, options))
}

/** Imports the server lazily, so that other commands start fast. */
async function createCa({ config, stdout }: CliContext, { replace = false }: Options) {
  const { setUpLocalCa } = await import('@atoll/server/tls/set-up-local-ca')
  const { explainTrust } = await import('@atoll/server/tls/explain-trust')
  const { isNew, ...ca } = await setUpLocalCa(config.environment, { replace })
  printLine(stdout, `${isNew ? 'created' : 'there is'} a local CA for ${ca.hostName}`)
  printLine(stdout, explainTrust(ca))
}

const help = `
Creates a certificate authority (CA) in ATOLL_DATA_DIR. The server then speaks HTTPS for
ATOLL_DOMAIN, with certificates of this CA that it renews by itself. The CA can sign names
below ATOLL_DOMAIN only. If there is a CA already, prints how to trust it.

Example:
  export ATOLL_DOMAIN=atoll.localhost:8443
  atoll tls local
  atoll up`
