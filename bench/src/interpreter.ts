import type { HttpCloud } from '@atoll/system-tests/http-cloud'
import { Sandbox } from '@e2b/code-interpreter'

/** The first create installs the template, which takes minutes where its layer is not cached. */
const limits = { timeoutMs: 3_600_000, requestTimeoutMs: 1_200_000 }

export async function createInterpreter({ installation }: HttpCloud): Promise<Sandbox> {
  return Sandbox.create({ ...installation.connection, ...limits })
}

export async function runCode(sandbox: Sandbox): Promise<void> {
  const { text, error } = await sandbox.runCode('1 + 1')
  if (text !== '2') throw new Error(`The code returned ${text}: ${error?.traceback}`)
}
