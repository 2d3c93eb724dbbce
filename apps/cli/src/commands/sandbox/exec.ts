import { Fault } from '@atoll/kit/fault'
import { collectPair, parseDuration } from '../../arguments.ts'
import type { Output, RunningProcess, StartRequest } from '../../attach.ts'
import { openPlatform } from '../../context.ts'
import type { CliContext } from '../../context.ts'
import { CliCommand } from '../../declare/command.ts'
import { UsageError } from '../../failure.ts'
import { exitCodeOf } from '../../exit-code.ts'
import { exitCodeOfSignal, onEndSignal } from '../../signals.ts'
import type { EndSignal } from '../../signals.ts'
import { pumpInput, writeFully } from '../../stdio.ts'
import { openSandbox } from './open-sandbox.ts'

export function execCommand(context: CliContext): CliCommand {
  return new CliCommand('exec')
    .description('run a command in a sandbox and return its output and exit code')
    .argument('<id>', 'sandbox ID; a paused sandbox is resumed')
    .argument('<command...>', 'one word runs in a login shell; several words run without a shell')
    .option('-u, --user <name>', 'user to run the command as (default: user)')
    .option('-w, --cwd <path>', 'working directory (default: home of the user)')
    .option('-e, --env <name=value>', 'environment variable; repeatable', collectPair)
    .option('-t, --timeout <duration>', 'kill the command after 300, 90s, 5m, 2h', parseDuration)
    .option('-i, --interactive', 'forward stdin even if it is a terminal')
    .passThroughOptions()
    .details(help)
    .action(async (id: string, words: string[], options: ExecOptions) => {
      context.exitWith(await exec(context, id, words, options))
    })
}

interface ExecOptions {
  readonly user?: string
  readonly cwd?: string
  readonly env?: Record<string, string>
  readonly timeout?: number
  readonly interactive?: boolean
}

async function exec(
  context: CliContext,
  id: string,
  words: readonly string[],
  options: ExecOptions,
): Promise<number> {
  const hasInput = Boolean(options.interactive) || !context.stdin.isTTY
  const request = toRequest(words, options, hasInput)
  const { attach } = await import('../../attach.ts')
  const { access, platform } = await openPlatform(context)
  const address = { ...(await openSandbox(platform, id)), user: options.user }
  const attached = new AbortController()
  using interrupt = forwardSignals(context, attached)
  let pumping: Promise<void> | undefined
  try {
    const handlers = {
      onStart(process: RunningProcess) {
        interrupt.target(process)
        if (!hasInput) return
        pumping = pumpInput(
          context.stdin,
          (bytes) => process.sendInput('stdin', bytes),
          () => process.closeInput(),
        ).catch((thrown: unknown) => attached.abort(thrown))
      },
      onOutput: (output: Output) => writeOutput(context, output),
    }
    const limits = { signal: attached.signal, timeoutSeconds: options.timeout }
    return exitCodeOf(await attach(access, address, request, handlers, limits))
  } catch (thrown) {
    if (thrown instanceof Interrupted) return thrown.exitCode
    if (options.timeout && thrown instanceof Fault && thrown.kind === 'timeout') {
      context.stderr.write(`command killed: it exceeded the --timeout of ${options.timeout} s\n`)
      return timedOutExitCode
    }
    throw thrown
  } finally {
    // An open stdin or a pending input request would keep the program from exiting.
    attached.abort()
    context.stdin.destroy()
    await pumping
  }
}

/** Same code as timeout(1). */
const timedOutExitCode = 124

function toRequest(
  words: readonly string[],
  options: ExecOptions,
  hasInput: boolean,
): StartRequest {
  const [first = '', ...rest] = words[0] === '--' ? words.slice(1) : words
  if (first === '') throw new UsageError('Missing command to run.')
  if (first.startsWith('-') && words[0] !== '--') {
    throw new UsageError(
      `Unexpected ${first}: put options before the sandbox ID, or a command that starts with - after --`,
    )
  }
  const [cmd, args] = rest.length === 0 ? ['/bin/bash', ['-l', '-c', first]] : [first, rest]
  return {
    process: {
      cmd,
      args,
      ...(options.env && { envs: options.env }),
      ...(options.cwd && { cwd: options.cwd }),
    },
    stdin: hasInput,
  }
}

function writeOutput({ stdout, stderr }: CliContext, output: Output): Promise<void> {
  if (output.case === undefined) return Promise.resolve()
  return writeFully(output.case === 'stderr' ? stderr : stdout, output.value)
}

/** Sends SIGTERM to the process at the first signal, then SIGKILL. Exits if the process has not started yet. */
function forwardSignals(context: CliContext, attached: AbortController) {
  let process: RunningProcess | undefined
  let count = 0
  const forwarded = onEndSignal(context, (signal) => {
    count += 1
    if (!process) return attached.abort(new Interrupted(signal))
    const sent = count === 1 ? process.terminate() : process.kill()
    sent.catch(() => attached.abort(new Interrupted(signal)))
  })
  return {
    target: (running: RunningProcess) => {
      process = running
    },
    [Symbol.dispose]: () => {
      forwarded[Symbol.dispose]()
    },
  }
}

class Interrupted extends Error {
  override readonly name = 'Interrupted'
  readonly exitCode: number

  constructor(signal: EndSignal) {
    super(`interrupted by ${signal}`)
    this.exitCode = exitCodeOfSignal(signal)
  }
}

const help = `
A single word runs in \`/bin/bash -l -c\`, so pipes and variables work. Several words run
as program and arguments, without a shell. Stdin is forwarded if it is a pipe or a file,
or with -i. Ctrl-C sends SIGTERM to the command, a second Ctrl-C SIGKILL.

The exit code is that of the command, 128 plus the signal number if a signal killed it,
or 124 after --timeout. A paused sandbox is resumed for 5 minutes; the end time of a
running sandbox does not change.

Examples:
  atoll sandbox exec <id> 'ls | wc -l'
  atoll sandbox exec --user root --cwd /etc <id> cat hostname
  tar c src | atoll sandbox exec <id> tar x
  atoll sandbox exec --timeout 10s <id> -- sleep 60`
