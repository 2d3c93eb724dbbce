import { Fault } from '@atoll/kit/fault'
import type { Logger } from '@atoll/kit/log'
import type { RunningSandbox, SandboxSource } from '../domain/sandbox.ts'
import { createDirectory } from './directory.ts'
import type { Directory, NodeDirectory } from './directory.ts'
import { createEntryIndex } from './entries.ts'
import type { Entry } from './entry.ts'

/** Running sandboxes of all nodes. Each node has a directory of its own, since two nodes may use the same addresses. */
export function createFleetDirectory(sources: readonly SandboxSource[], log: Logger): Directory {
  const index = createEntryIndex()
  const directories = sources.map((source) => createDirectory(source, log, index))
  const [only] = directories
  return {
    get open() {
      return index.connections.open
    },
    find(id) {
      if (only && directories.length === 1) return only.find(id)
      const known = index.newest(id)
      if (known?.isTrusted() && !known.isPausing) return known
      return askAll(directories, id)
    },
    async close() {
      await Promise.all(directories.map((directory) => directory.close()))
    },
  }
}

/** A node that does not answer matters only if no other node has the sandbox. */
async function askAll(
  directories: readonly NodeDirectory[],
  id: string,
): Promise<RunningSandbox | undefined> {
  const answers = await Promise.allSettled(directories.map(async (one) => one.find(id)))
  let newest: Entry | undefined
  for (const answer of answers) {
    if (answer.status === 'rejected' || !answer.value) continue
    if (!newest || answer.value.generation > newest.generation) newest = answer.value
  }
  if (newest) return newest
  const failure = answers.find((answer) => answer.status === 'rejected')
  if (failure) throw Fault.from(failure.reason)
  return undefined
}
