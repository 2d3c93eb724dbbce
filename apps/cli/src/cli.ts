import { styleText } from 'node:util'
import { loadConfig } from './config.ts'
import { printStyled } from './context.ts'
import type { CliContext, Host } from './context.ts'
import type { CliCommand } from './declare/command.ts'
import { withDescendants } from './declare/command.ts'
import { declareProgram, isNamedIn } from './program.ts'
import { explain } from './failure.ts'
import { visibleText } from './output/visible-text.ts'

/** Runs one command line and returns the exit code. Never throws. */
export async function runCli(args: readonly string[], host: Host): Promise<number> {
  let exitCode = 0
  const exitWith = (code: number) => {
    exitCode = code
  }
  try {
    const { env, ...rest } = host
    const context = { ...rest, config: loadConfig(env), exitWith }
    const program = await buildProgram(context, args)
    await program.parseAsync(args, { from: 'user' })
    return exitCode
  } catch (thrown) {
    const failure = explain(thrown, args)
    if (failure.message) {
      const { stderr } = host
      const error = styleText('red', 'error:', { stream: stderr })
      printStyled(stderr, `${error} ${visibleText(failure.message)}`)
      if (failure.hint) {
        printStyled(stderr, `${styleText('dim', 'hint:', { stream: stderr })} ${failure.hint}`)
      }
    }
    return failure.exitCode
  }
}

async function buildProgram(context: CliContext, args: readonly string[]): Promise<CliCommand> {
  const program = await declareProgram(context, isNamedIn(args))
  for (const command of withDescendants(program)) {
    command.exitOverride().configureOutput({
      writeOut: (text) => context.stdout.write(text),
      writeErr: (text) => context.stderr.write(text),
    })
  }
  return program
}
