import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { z } from 'zod'
import { parsePort } from '../../arguments.ts'
import { openPlatform, printJson, printLine } from '../../context.ts'
import type { CliContext } from '../../context.ts'
import { CliCommand } from '../../declare/command.ts'
import { portUrl } from './port-url.ts'

export function openCommand(context: CliContext): CliCommand {
  return new CliCommand('open')
    .description('print the URL of a port of a sandbox, or open it in a browser')
    .argument('<id>', 'sandbox ID')
    .argument('<port>', 'port that a server in the sandbox listens on', parsePort)
    .option('-b, --browser', 'open the URL in the browser of this machine')
    .json(OpenedPort)
    .details(help)
    .action((id: string, port: number, options: OpenOptions) => open(context, id, port, options))
}

const OpenedPort = z
  .object({ sandboxID: z.string(), port: z.int(), url: z.string() })
  .meta({ id: 'OpenedPort' })

interface OpenOptions {
  readonly browser?: boolean
  readonly json?: boolean
}

async function open(context: CliContext, id: string, port: number, options: OpenOptions) {
  const { access, platform } = await openPlatform(context)
  const { sandboxID } = await platform.getSandbox(id)
  const url = portUrl(access, context.config, { sandboxId: sandboxID, port })
  if (options.json) printJson(context.stdout, { sandboxID, port, url })
  else printLine(context.stdout, url)
  if (options.browser) await browse(url)
}

async function browse(url: string): Promise<void> {
  const program = process.platform === 'darwin' ? 'open' : 'xdg-open'
  const child = spawn(program, [url], { stdio: 'ignore', detached: true })
  await once(child, 'spawn').catch((cause: unknown) => {
    throw new Error(`no browser: ${program} cannot be started; open the URL by hand`, { cause })
  })
  child.unref()
}

const help = `
The URL names the sandbox by host name, such as http://8000-<id>.localhost:3000/. Set
ATOLL_DOMAIN (or E2B_DOMAIN) if the server has a domain of its own.

Example:
  curl $(atoll sandbox open <id> 8000)`
