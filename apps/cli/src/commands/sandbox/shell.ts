import { Fault } from '@atoll/kit/fault'
import { collectPair } from '../../arguments.ts'
import type { Output, RunningProcess } from '../../attach.ts'
import { openPlatform } from '../../context.ts'
import type { CliContext } from '../../context.ts'
import { CliCommand } from '../../declare/command.ts'
import { syncTerminalSize } from '../../terminal-size-sync.ts'
import { keepAlive } from '../../keep-alive.ts'
import { exitCodeOf } from '../../exit-code.ts'
import { exitCodeOfSignal, onEndSignal } from '../../signals.ts'
import type { EndSignal } from '../../signals.ts'
import { pumpInput, writeFully } from '../../stdio.ts'
import { openRawTerminal } from '../../terminal.ts'
import type { TerminalSize } from '../../terminal.ts'

export function shellCommand(context: CliContext): CliCommand {
  return new CliCommand('shell')
    .description('open a terminal in a sandbox')
    .argument('<id>', 'sandbox ID; a paused sandbox is resumed')
    .option('-u, --user <name>', 'user to log in as (default: user)')
    .option('-w, --cwd <path>', 'working directory (default: home of the user)')
    .option('-e, --env <name=value>', 'environment variable of the shell; repeatable', collectPair)
    .details(help)
    .action(async (id: string, options: ShellOptions) => {
      context.exitWith(await shell(context, id, options))
    })
}

interface ShellOptions {
  readonly user?: string
  readonly cwd?: string
  readonly env?: Record<string, string>
}

/** Renewed every minute, so an attached sandbox always has at least four minutes left. */
const sandboxTimeoutSeconds = 300
const extendEveryMs = 60_000

async function shell(context: CliContext, id: string, options: ShellOptions): Promise<number> {
  const { attach } = await import('../../attach.ts')
  const { access, platform } = await openPlatform(context)
  const attached = new AbortController()
  const detach = (signal: EndSignal) => attached.abort(new Detached(exitCodeOfSignal(signal)))
  // Disposed in reverse order: the terminal is restored before its input is closed.
  using cleanup = new DisposableStack()
  cleanup.defer(() => context.stdin.destroy())
  const terminal = cleanup.use(openRawTerminal(context))
  cleanup.use(onEndSignal(context, detach))
  let running: RunningProcess | undefined
  try {
    const timeout = { timeoutSeconds: sandboxTimeoutSeconds }
    const extend = () => platform.connectSandbox(id, timeout, { signal: attached.signal })
    const { sandbox } = await extend()
    void keepAlive(extend, extendEveryMs, attached.signal)
    const address = {
      sandboxId: sandbox.sandboxID,
      accessToken: sandbox.envdAccessToken,
      user: options.user,
    }
    const size = terminal.size()
    const request = {
      process: {
        cmd: '/bin/bash',
        args: ['-i', '-l'],
        envs: { ...context.config.terminalEnv, ...options.env },
        ...(options.cwd && { cwd: options.cwd }),
      },
      pty: { size },
    }
    const handlers = {
      onStart(process: RunningProcess) {
        running = process
        forwardKeys(context, process, attached)
        const send = (changed: TerminalSize) => process.resize(changed)
        const syncing = syncTerminalSize({ terminal, initialSize: size, send }, attached.signal)
        syncing.catch((thrown: unknown) => attached.abort(thrown))
      },
      onOutput: (output: Output) => writeFully(context.stdout, output.value ?? new Uint8Array()),
    }
    const limits = { signal: attached.signal }
    return exitCodeOf(await attach(access, address, request, handlers, limits))
  } catch (thrown) {
    terminal.resetModes()
    if (!(thrown instanceof Detached)) throw thrown
    // Interactive shells ignore SIGTERM.
    await running?.kill().catch(ignoreFault)
    return thrown.exitCode
  } finally {
    attached.abort()
  }
}

function forwardKeys(
  context: CliContext,
  process: RunningProcess,
  attached: AbortController,
): void {
  pumpInput(
    context.stdin,
    (bytes) => process.sendInput('pty', bytes),
    // The local terminal was closed.
    async () => attached.abort(new Detached(exitCodeOfSignal('SIGHUP'))),
  ).catch((thrown: unknown) => attached.abort(thrown))
}

function ignoreFault(thrown: unknown): void {
  if (!(thrown instanceof Fault)) throw thrown
}

/** The local terminal closes while the shell still runs. */
class Detached extends Error {
  override readonly name = 'Detached'
  readonly exitCode: number

  constructor(exitCode: number) {
    super('detached from the terminal')
    this.exitCode = exitCode
  }
}

const help = `
All keys, including Ctrl-C, go to the sandbox. Ctrl-D or \`exit\` ends the shell, and this
program returns its exit code. While the terminal is open, the timeout of the sandbox is
extended; afterwards at least 4 minutes are left.`
