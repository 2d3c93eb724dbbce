import { createReadStream } from 'node:fs'
import { stat } from 'node:fs/promises'
import { request } from 'node:http'
import { pipeline } from 'node:stream/promises'
import { createSandboxClient } from '@atoll/client/sandbox'
import type { ProcessClient } from '@atoll/client/sandbox'
import { Code, ConnectError } from '@connectrpc/connect'
import { UnknownUserError } from '../domain/sandboxes/commands.ts'
import type { Command, Commands, EnvdEndpoint } from '../domain/sandboxes/commands.ts'
import { createLines } from './lines.ts'
import { envdPort } from './port.ts'

/**
 * Runs programs in a sandbox through its envd.
 *
 * Threats: an attacker who took over the sandbox can send any answer. The client limits the size of each message, long
 * lines are cut, and the caller's signal ends everything.
 */
export const envdCommands: Commands = {
  async run(endpoint, command, { onLine, signal }) {
    const events = started(endpoint, command, signal)
    const lines = { stdout: createLines(), stderr: createLines() }
    for await (const { event } of events) {
      if (event?.event.case === 'data') {
        const { output } = event.event.value
        if (output.case !== 'stdout' && output.case !== 'stderr') continue
        for (const line of lines[output.case].add(output.value)) await onLine(output.case, line)
      } else if (event?.event.case === 'end') {
        for (const kind of ['stdout', 'stderr'] as const) {
          for (const line of lines[kind].rest()) await onLine(kind, line)
        }
        const { exited, exitCode, status, error } = event.event.value
        return exited ? { exitCode } : { exitCode: undefined, reason: error ?? status }
      }
    }
    throw new Error('the connection to envd closed before the program ended')
  },

  async start(endpoint, command, signal) {
    // The program keeps running without a listener.
    for await (const { event } of started(endpoint, command, signal))
      if (event?.event.case === 'start') return
    throw new Error('envd did not report the start of the program')
  },

  async put(endpoint, file, path, signal) {
    const { size } = await stat(file)
    const query = new URLSearchParams({ path, username: 'root' })
    const outgoing = request({
      ...target(endpoint),
      method: 'POST',
      path: `/files?${query.toString()}`,
      signal,
      headers: {
        'content-type': 'application/octet-stream',
        'content-length': size,
        ...(endpoint.accessToken !== undefined && { 'x-access-token': endpoint.accessToken }),
      },
    })
    const answered = new Promise<number | undefined>((resolve, reject) => {
      outgoing.once('response', (response) => {
        response.destroy()
        resolve(response.statusCode)
      })
      outgoing.on('error', reject).once('close', () => resolve(undefined))
    })
    // envd may answer before the end of the file is read here: it knows the size. Then the connection ends too soon for
    // `pipeline`, but the file is complete. All other failures also fail the request.
    const sent = pipeline(createReadStream(file), outgoing).catch(() => {})
    const status = await answered.finally(() => sent)
    if (status !== 200)
      throw new Error(`envd refused a file: status ${status ?? 'unknown, no answer'}`)
  },
}

/**
 * Starts a process. Converts errors of the sandbox to plain text, so that none of its codes can be mistaken for one of
 * ours.
 */
async function* started(
  endpoint: EnvdEndpoint,
  { command, args, user, cwd, envVars }: Command,
  signal: AbortSignal,
): ReturnType<ProcessClient['start']> {
  const process = { cmd: command, args: [...args], envs: { ...envVars }, ...(cwd && { cwd }) }
  try {
    yield* clientOf(endpoint, user).start({ process, stdin: false }, { signal })
  } catch (error) {
    signal.throwIfAborted()
    const { code, rawMessage } = ConnectError.from(error)
    if (code === Code.Unauthenticated) throw new UnknownUserError(rawMessage, { cause: error })
    throw new Error(rawMessage, { cause: error })
  }
}

function target({ address }: EnvdEndpoint) {
  // Use a new connection each time: none may be open when the sandbox is copied.
  return { host: address, port: envdPort, agent: false as const }
}

function clientOf({ address, accessToken }: EnvdEndpoint, user: string) {
  const url = `http://${address}:${envdPort}`
  return createSandboxClient({ url, sandboxId: '', accessToken, user })
}
