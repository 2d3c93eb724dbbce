import { Fault } from '@atoll/kit/fault'
import { BuildError } from '../../domain/builds/build-error.ts'

/** Turns failures inside a sandbox into build errors for the template's author. */
export function asBuildError(step: string, signal: AbortSignal): (error: unknown) => never {
  return (error) => {
    signal.throwIfAborted()
    if (error instanceof BuildError) throw error
    if (error instanceof Fault && error.kind === 'internal') throw error
    const message = error instanceof Error ? error.message : String(error)
    throw new BuildError(step, `The step failed: ${shorten(message)}`, { cause: error })
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
