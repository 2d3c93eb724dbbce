import { Fault } from '@atoll/kit/fault'
import { parseDockerfile } from '@atoll/kit/dockerfile/parse'
import type { Dockerfile } from '@atoll/kit/dockerfile/parse'
import { UsageError } from '../failure.ts'

/** Reads the Dockerfile of a build directory. A mistake in it is a usage error, like one on the command line. */
export function readDockerfile(
  text: string,
  buildArgs: Readonly<Record<string, string>> = {},
): Dockerfile {
  const dockerfile = parse(text, buildArgs)
  const unused = Object.keys(buildArgs).filter((name) => !dockerfile.declaredArgs.has(name))
  if (unused.length === 0) return dockerfile
  throw new UsageError(`The Dockerfile has no ARG ${unused.join(', ')} for --build-arg.`)
}

function parse(text: string, buildArgs: Readonly<Record<string, string>>): Dockerfile {
  try {
    return parseDockerfile(text, { buildArgs, hasFiles: true })
  } catch (thrown) {
    throw thrown instanceof Fault ? new UsageError(thrown.message) : thrown
  }
}
