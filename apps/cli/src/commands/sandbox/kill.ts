import type { PlatformClient } from '@atoll/client/platform'
import { Fault } from '@atoll/kit/fault'
import { openPlatform, printLine } from '../../context.ts'
import type { CliContext } from '../../context.ts'
import { CliCommand } from '../../declare/command.ts'
import { UsageError } from '../../failure.ts'
import { forEachId } from '../each-id.ts'

export function killCommand(context: CliContext): CliCommand {
  return new CliCommand('kill')
    .description('end sandboxes and delete their memory and files')
    .argument('[ids...]', 'sandbox IDs')
    .option('-a, --all', 'kill all your sandboxes, running and paused')
    .action((ids: string[], options: KillOptions) => kill(context, ids, options))
}

interface KillOptions {
  readonly all?: boolean
}

async function kill(context: CliContext, ids: readonly string[], options: KillOptions) {
  if (options.all ? ids.length > 0 : ids.length === 0) {
    throw new UsageError('Give either sandbox IDs or --all.')
  }
  const { platform } = await openPlatform(context)
  const targets = options.all ? await allIds(platform) : ids
  if (options.all && targets.length === 0) printLine(context.stderr, 'No sandboxes.')
  await forEachId(targets, async (id) => {
    try {
      await platform.killSandbox(id)
      printLine(context.stdout, `killed ${id}`)
    } catch (thrown) {
      // A sandbox that ended after the list was read is no failure of --all.
      const isGone = thrown instanceof Fault && thrown.kind === 'not_found'
      if (!isGone || !options.all) throw thrown
    }
  })
}

async function allIds(platform: PlatformClient): Promise<readonly string[]> {
  const sandboxes = await Array.fromAsync(platform.listSandboxes())
  return sandboxes.map((sandbox) => sandbox.sandboxID)
}
