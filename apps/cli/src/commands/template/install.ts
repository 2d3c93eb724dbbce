import { CatalogueTemplate } from '@atoll/contracts/templates/catalogue'
import { setTimeout as sleep } from 'node:timers/promises'
import type { PlatformClient } from '@atoll/client/platform'
import type { CatalogueEntry } from '@atoll/client/replies'
import { Fault } from '@atoll/kit/fault'
import { openPlatform, printJson, printLine } from '../../context.ts'
import type { CliContext } from '../../context.ts'
import { openProgress } from '../../output/progress.ts'
import { CliCommand } from '../../declare/command.ts'

interface InstallOptions {
  readonly json?: boolean
}

export function installCommand(context: CliContext): CliCommand {
  return new CliCommand('install')
    .description('install a built-in template for all teams; waits until it is ready')
    .argument('<name>', 'name in the catalogue, such as code-interpreter')
    .json(CatalogueTemplate, 'print the final state as JSON')
    .details(help)
    .action((name: string, options: InstallOptions) => install(context, name, options))
}

const pollIntervalMs = 500

async function install(context: CliContext, name: string, { json }: InstallOptions) {
  const { platform } = await openPlatform(context)
  const progress = openProgress(context.stderr)
  let entry = await platform.installTemplate(name)
  try {
    while (entry.state === 'installing') {
      const { label, percent } = entry.progress ?? { label: 'waiting', percent: 0 }
      progress.report(`${entry.name}: ${label}`, percent / 100)
      await sleep(pollIntervalMs)
      entry = await readEntry(platform, entry)
    }
  } finally {
    progress.clear()
  }
  if (entry.state !== 'installed') {
    const reason = entry.failure ?? 'The server was restarted meanwhile. Run the command again.'
    throw new Fault('unavailable', 'install_failed', `${entry.name} is not installed: ${reason}`)
  }
  if (json) return printJson(context.stdout, entry)
  printLine(context.stdout, entry.templateName)
}

async function readEntry(platform: PlatformClient, entry: CatalogueEntry): Promise<CatalogueEntry> {
  const found = (await platform.listCatalogue()).find(({ name }) => name === entry.name)
  return found ?? { ...entry, state: 'absent' }
}

const help = `
Builds the template on the node from Debian packages, which takes a few minutes. Ctrl-C stops
waiting, not the install. Prints the name of the template, to create sandboxes from. With
ATOLL_ADMIN_TOKEN the command acts as an operator.`
