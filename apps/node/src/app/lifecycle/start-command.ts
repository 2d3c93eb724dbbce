import { setTimeout as sleep } from 'node:timers/promises'
import { Fault } from '@atoll/kit/fault'
import { randomHex } from '@atoll/kit/id'
import { unclaimedHostname } from '../../domain/sandboxes/cell.ts'
import type { Cell } from '../../domain/sandboxes/cell.ts'
import { inShell } from '../../domain/sandboxes/commands.ts'
import type { Commands, EnvdEndpoint, OnLine } from '../../domain/sandboxes/commands.ts'
import { readyCommandOf, defaultSetup } from '../../domain/sandboxes/setup.ts'
import type { Setup } from '../../domain/sandboxes/setup.ts'
import type { AssignIdentity } from './assign-identity.ts'

/** Runs the start command of a booted cell's template and waits until its ready command succeeds. */
export type RunStartCommand = (cell: Cell, options?: StartCommandOptions) => Promise<void>

export interface StartCommandOptions {
  /** Receives the output of the commands. */
  readonly onLine?: OnLine
  readonly signal?: AbortSignal | undefined
}

/** Retry delays: short at first, so a program that starts fast is not waited for long. */
const retryMs = { first: 50, longest: 2_000 }
const readyLimitMs = 600_000

export function createRunStartCommand(ports: {
  readonly assignIdentity: AssignIdentity
  readonly commands: Commands
  /** Drops the boot-time CPU priority of a new cell. */
  dropBootPriority(cellId: string): Promise<void>
}): RunStartCommand {
  const { assignIdentity, commands } = ports
  return async (cell, { onLine = async () => {}, signal: given } = {}) => {
    const { setup = defaultSetup } = cell.record
    const readyCommand = readyCommandOf(setup)
    if (readyCommand === undefined) return
    const limit = AbortSignal.timeout(readyLimitMs)
    const signal = given ? AbortSignal.any([given, limit]) : limit
    // Temporary token: replaced when the sandbox is claimed.
    const accessToken = randomHex(20)
    await assignIdentity(cell, { sandboxId: unclaimedHostname, accessToken }, { signal })
    const endpoint = { address: cell.slot.sandboxAddress, accessToken }
    await ports.dropBootPriority(cell.record.cellId)
    await launchStartCommand(commands, endpoint, setup, signal)
    try {
      for (let waitMs = retryMs.first; ; waitMs = Math.min(waitMs * 2, retryMs.longest)) {
        const command = { ...inShell(readyCommand), ...execContext(setup) }
        const { exitCode } = await commands.run(endpoint, command, { onLine, signal })
        if (exitCode === 0) return
        await sleep(waitMs, undefined, { signal })
      }
    } catch (error) {
      if (!limit.aborted) throw error
      const minutes = readyLimitMs / 60_000
      const message = `It was not ready within ${minutes} minutes: ${readyCommand} did not succeed`
      throw new Fault('timeout', 'not_ready', message, { cause: error })
    }
  }
}

/** Starts the start command without waiting until it is ready. */
export async function launchStartCommand(
  commands: Commands,
  endpoint: EnvdEndpoint,
  setup: Setup | undefined,
  signal: AbortSignal,
): Promise<void> {
  if (setup?.startCommand === undefined) return
  const command = { ...inShell(setup.startCommand), ...execContext(setup) }
  await commands.start(endpoint, command, signal)
}

/** envd already has the variables. */
function execContext({ user, workdir }: Setup) {
  return { user, cwd: workdir, envVars: {} }
}
