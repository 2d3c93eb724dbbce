import { z } from 'zod'
import { openPlatform, printJson, printLine } from '../../context.ts'
import type { CliContext } from '../../context.ts'
import { CliCommand } from '../../declare/command.ts'
import { printTable } from '../../output/table.ts'
import { openSandbox } from './open-sandbox.ts'
import { portUrl } from './port-url.ts'

export function portsCommand(context: CliContext): CliCommand {
  return new CliCommand('ports')
    .description('list the TCP ports that listen in a sandbox, with their URLs')
    .argument('<id>', 'sandbox ID; a paused sandbox is resumed')
    .json(z.array(SandboxPort))
    .action((id: string, options: { readonly json?: boolean }) => ports(context, id, options))
}

const SandboxPort = z
  .object({
    port: z.int(),
    addresses: z.array(z.string()).describe('`*` stands for all addresses of IPv4 or IPv6'),
    url: z.string().describe('URL from outside'),
  })
  .meta({ id: 'SandboxPort' })

async function ports(context: CliContext, id: string, { json }: { readonly json?: boolean }) {
  const { capture } = await import('../../copy/capture.ts')
  const { readListeningPorts } = await import('./listening-ports.ts')
  const { access, platform } = await openPlatform(context)
  const address = await openSandbox(platform, id)
  // The second file is missing without IPv6.
  const { stdout } = await capture(access, address, ['cat', '/proc/net/tcp', '/proc/net/tcp6'])
  const found = readListeningPorts(stdout).map(({ port, addresses }) => ({
    ...{ port, addresses },
    url: portUrl(access, context.config, { sandboxId: address.sandboxId, port }),
  }))
  if (json) return printJson(context.stdout, found)
  if (found.length === 0) return printLine(context.stderr, `Nothing listens in ${id}.`)
  const rows = found.map(({ port, addresses, url }) => [String(port), addresses.join(', '), url])
  printTable(context.stdout, ['PORT', 'ADDRESS', 'URL'], rows)
}
