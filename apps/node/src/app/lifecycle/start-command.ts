import { randomHex } from '@atoll/kit/id'
import { unclaimedHostname } from '../../domain/sandboxes/cell.ts'
import type { Cell } from '../../domain/sandboxes/cell.ts'
import { inShell } from '../../domain/sandboxes/commands.ts'
import type { Commands, EnvdEndpoint, OnLine } from '../../domain/sandboxes/commands.ts'
import { readyCommandOf, defaultSetup } from '../../domain/sandboxes/setup.ts'
import type { Setup } from '../../domain/sandboxes/setup.ts'
import type { AssignIdentity } from './assign-identity.ts'
import { waitUntilReady } from './ready-check.ts'

/** Runs the start command of a booted cell's template and waits until its ready command succeeds. */
export type RunStartCommand = (cell: Cell, options?: StartCommandOptions) => Promise<void>

export interface StartCommandOptions {
  /** Receives the output of the ready command's last attempt. */
  readonly onLine?: OnLine
  /** Time limit for the ready command. */
  readonly readyLimitMs?: number
  readonly signal?: AbortSignal | undefined
}

/** Longer than the limit of builds: a start command that was ready there may take longer on a busy machine. */
const longestReadyMs = 600_000

export function createRunStartCommand(ports: {
  readonly assignIdentity: AssignIdentity
  readonly commands: Commands
  /** Drops the boot-time CPU priority of a new cell. */
  dropBootPriority(cellId: string): Promise<void>
}): RunStartCommand {
  const { assignIdentity, commands } = ports
  return async (cell, options = {}) => {
    const { onLine = async () => {}, readyLimitMs: limitMs = longestReadyMs } = options
    const { setup = defaultSetup } = cell.record
    const readyCommand = readyCommandOf(setup)
    if (readyCommand === undefined) return
    const signal = options.signal ?? new AbortController().signal
    // Temporary token: replaced when the sandbox is claimed.
    const accessToken = randomHex(20)
    await assignIdentity(cell, { sandboxId: unclaimedHostname, accessToken }, { signal })
    const endpoint = { address: cell.slot.sandboxAddress, accessToken }
    await ports.dropBootPriority(cell.record.cellId)
    await launchStartCommand(commands, endpoint, setup, signal)
    const command = { ...inShell(readyCommand), ...execContext(setup) }
    await waitUntilReady(commands, endpoint, {
      ...{ command, shown: readyCommand, limitMs, onLine, signal },
    })
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
