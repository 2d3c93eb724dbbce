import { envdHeaders, openProcess, outputOf } from '@atoll/system-tests/http-cloud'
import type { HttpCloud, HttpSandbox } from '@atoll/system-tests/http-cloud'

export const printCommand = ['/bin/echo', 'hello'] as const

/** Runs a command over plain HTTP until its first output. The returned function reads the rest. */
export async function runUntilFirstOutput(
  { installation }: HttpCloud,
  sandbox: HttpSandbox,
): Promise<() => Promise<unknown>> {
  const [cmd, ...args] = printCommand
  const process = await openProcess(installation.url, envdHeaders(sandbox), {
    process: { cmd, args },
    stdin: false,
  })
  const printed = await process.next()
  if (!printed || outputOf([printed]) === '') throw new Error('The command printed nothing')
  return process.readRemaining
}

export interface CreateTiming {
  /** Time to the reply to the create request. */
  readonly createdMs: number
  /** Time to the first output of a command, from the same start. */
  readonly printedMs: number
}

/** Creates a sandbox, runs a command in it, and kills it. */
export async function timeCreate(cloud: HttpCloud): Promise<CreateTiming> {
  const began = performance.now()
  const sandbox = await cloud.createSandbox()
  const createdMs = performance.now() - began
  const rest = await runUntilFirstOutput(cloud, sandbox)
  const printedMs = performance.now() - began
  await rest()
  await killSandbox(cloud, sandbox.sandboxID)
  return { createdMs, printedMs }
}

/**
 * Runs a few commands, so that sandboxes of all kinds have compiled the same code and have about as much memory: a booted
 * one otherwise has less than one from the pool.
 */
export async function runFirstCommands(cloud: HttpCloud, sandbox: HttpSandbox): Promise<void> {
  for (let turn = 0; turn < 3; turn += 1) {
    const rest = await runUntilFirstOutput(cloud, sandbox)
    await rest()
  }
}

export async function killSandbox(cloud: HttpCloud, sandboxId: string): Promise<void> {
  const { status, text } = await cloud.platform('DELETE', `/sandboxes/${sandboxId}`)
  if (status !== 204) throw new Error(`Cannot kill sandbox ${sandboxId}: ${status} ${text}`)
}
