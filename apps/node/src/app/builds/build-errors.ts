import { Fault } from '@atoll/kit/fault'
import { CommandFailed } from '@atoll/kit/run'
import { BuildError } from '../../domain/builds/build-error.ts'
import { UnknownUserError } from '../../domain/sandboxes/commands.ts'
import type { Command } from '../../domain/sandboxes/commands.ts'

/** Turns failures inside a sandbox into build errors for the template's author. */
export function asBuildError(step: string, signal: AbortSignal): (error: unknown) => never {
  return (error) => {
    signal.throwIfAborted()
    if (error instanceof BuildError) throw error
    if (isOfHost(error)) throw error
    const message = error instanceof Error ? error.message : String(error)
    throw new BuildError(step, `The step failed: ${shorten(message)}`, { cause: error })
  }
}

/** Returns whether the message is for operators: it may have paths, command lines and output of this machine. */
function isOfHost(error: unknown): boolean {
  if (error instanceof Fault) return error.kind === 'internal'
  return error instanceof CommandFailed || (error instanceof Error && 'path' in error)
}

/** Published clients compare this text. */
export function asBuildErrorIfUnknownUser(
  step: string,
  { args, user }: Command,
): (error: unknown) => never {
  return (error) => {
    if (!(error instanceof UnknownUserError)) throw error
    const cause = `unauthenticated: invalid username: '${user}'`
    const text = `failed to run command '${shorten(args.at(-1) ?? '')}': command failed: ${cause}`
    throw new BuildError(step, text, { cause: error })
  }
}

/** Turns only a lack of space into a build error: other errors name paths of this machine. */
export function asBuildErrorIfFull(step: string): (error: unknown) => never {
  return (error) => {
    if (!(error instanceof Fault) || error.kind !== 'exhausted') throw error
    throw new BuildError(step, error.message, { cause: error })
  }
}

/** Limits text for a build log. */
export function shorten(text: string): string {
  return text.length > longestText ? `${text.slice(0, longestText)}…` : text
}

const longestText = 500
