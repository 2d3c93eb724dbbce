import type { PlatformClient } from '@atoll/client/platform'
import { Fault } from '@atoll/kit/fault'
import { openPlatform, printLine } from '../../context.ts'
import type { CliContext } from '../../context.ts'
import { CliCommand } from '../../declare/command.ts'
import { forEachId } from '../each-id.ts'

export function pauseCommand(context: CliContext): CliCommand {
  return new CliCommand('pause')
    .description('pause sandboxes: memory and files are saved to disk, and nothing runs')
    .argument('<ids...>', 'sandbox IDs')
    .option('--no-memory', 'save files only; a resume boots the sandbox')
    .details(help)
    .action((ids: string[], options: PauseOptions) => pause(context, ids, options))
}

interface PauseOptions {
  readonly memory: boolean
}

async function pause(context: CliContext, ids: readonly string[], { memory }: PauseOptions) {
  const { platform } = await openPlatform(context)
  await forEachId(ids, async (id) => {
    const wasRunning = await pauseOne(platform, id, memory)
    printLine(context.stdout, `${wasRunning ? 'paused' : 'already paused'} ${id}`)
  })
}

/** Returns false if the sandbox was already paused. */
async function pauseOne(platform: PlatformClient, id: string, memory: boolean): Promise<boolean> {
  try {
    await platform.pauseSandbox(id, { memory })
    return true
  } catch (thrown) {
    if (thrown instanceof Fault && thrown.reason === 'sandbox_paused') return false
    throw thrown
  }
}

const help = `
A paused sandbox has no timeout: it stays until it is resumed or killed. Connections to
the outside are closed; connections inside the sandbox survive. The \`runc\` runtime cannot
save memory and needs --no-memory.

Examples:
  atoll sandbox pause <id>
  atoll sandbox list --state paused
  atoll sandbox resume <id>`
