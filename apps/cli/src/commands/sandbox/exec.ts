import { Fault } from '@atoll/kit/fault'
import { Command } from 'commander'
import { collectPair, parseDuration } from '../../arguments.ts'
import type { Output, RunningProcess, StartRequest } from '../../attach.ts'
import { openPlatform } from '../../context.ts'
import type { CliContext } from '../../context.ts'
import { UsageError } from '../../failure.ts'
import { exitCodeOf } from '../../exit-code.ts'
import { exitCodeOfSignal, onEndSignal } from '../../signals.ts'
import type { EndSignal } from '../../signals.ts'
import { pumpInput, writeFully } from '../../stdio.ts'
import { openSandbox } from './open.ts'

export function execCommand(context: CliContext): Command {
  return new Command('exec')
    .description('run a command in a sandbox and pass on its output and exit code')
    .argument('<id>', 'the sandbox; a paused one is resumed')
    .argument('<command...>', 'one word: run by a login shell; several: run as they are')
    .option('-u, --user <name>', 'the user to run it as (default: user)')
    .option('-w, --cwd <path>', 'the folder to run it in (default: the home of the user)')
    .option('-e, --env <name=value>', 'a variable for it; may be repeated', collectPair)
    .option('-t, --timeout <duration>', 'kill it after 300, 90s, 5m, 2h', parseDuration)
    .option('-i, --interactive', 'pass on stdin even when it is a terminal')
    .passThroughOptions()
    .addHelpText('after', help)
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
      context.stderr.write(`killed after ${options.timeout} s, as --timeout asks\n`)
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
  if (first === '') throw new UsageError('There is no command to run.')
  if (first.startsWith('-') && words[0] !== '--') {
    throw new UsageError(`${first}: options go before the id; a command that begins so, after --`)
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

/** The first signal sends SIGTERM to the process, the second one SIGKILL. Before the process has started, exits. */
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
A command of one word is run by \`/bin/bash -l -c\`, so that pipes and variables work;
several words are run as they are, without a shell and without a second quoting.
Stdin is passed on when it is a pipe or a file, or with -i. Ctrl-C sends SIGTERM to the
command, a second one SIGKILL. The exit code is that of the command; 128 and the number
of the signal when one ended it; 124 when --timeout did. A sandbox that is resumed for the
command lives 5 minutes from then; the end of one that runs stays as it is.

Examples:
  atoll sandbox exec <id> 'ls | wc -l'
  atoll sandbox exec --user root --cwd /etc <id> cat hostname
  tar c src | atoll sandbox exec <id> tar x
  atoll sandbox exec --timeout 10s <id> -- sleep 60`
