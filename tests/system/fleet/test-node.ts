/** Requests to a real node, and commands in the sandboxes on it. */
import assert from 'node:assert/strict'
import type { NodeService } from '@atoll/contracts/gen/atoll/node/v1/node_pb'
import { waitFor } from '@atoll/kit/wait'
import { envdCommands } from '@atoll/node/envd/commands'
import { Code, ConnectError } from '@connectrpc/connect'
import type { Client } from '@connectrpc/connect'

export const limit = { timeoutMs: 300_000, intervalMs: 200 }

export interface TestNode {
  readonly client: Client<typeof NodeService>
  readonly dataDir: string
  /** Ends the agent and starts it again on the same data. */
  restart(): Promise<void>
  close(): Promise<void>
}

export async function shell(
  { client }: TestNode,
  sandboxId: string,
  text: string,
): Promise<string> {
  const { sandbox } = await client.getSandbox({ sandboxId })
  const lines: string[] = []
  const { exitCode } = await envdCommands.run(
    { address: sandbox?.address ?? '', accessToken: undefined },
    { command: '/bin/sh', args: ['-c', text], user: 'root', cwd: undefined, envVars: {} },
    {
      onLine: async (_stream, line) => void lines.push(line),
      signal: AbortSignal.timeout(120_000),
    },
  )
  assert.equal(exitCode, 0, `${text}: ${lines.join('\n')}`)
  return lines.join('\n')
}

/** Returns the name of the content, for a fetch. */
export async function waitUntilDurable({ client }: TestNode, sandboxId: string) {
  const { keptGeneration, keptId } = await waitFor(
    `the upload of ${sandboxId}`,
    async () => {
      const { sandbox } = await client.getSandbox({ sandboxId })
      return sandbox?.isDurable && sandbox
    },
    limit,
  )
  return { sandboxId, keptGeneration, keptId }
}

/** Returns the entries as text. `fromObjects`: as the object store has them; none if it has no log. */
export async function readLog({ client }: TestNode, sandboxId: string, fromObjects = false) {
  const query = { sandboxId, newestFirst: false, limit: 10_000, fromObjects }
  const { entries } = await client.readLogs(query).catch((error: unknown) => {
    if (ConnectError.from(error).code === Code.NotFound) return { entries: [] }
    throw error
  })
  return entries.map(({ atMs, message }) => `${atMs} ${message}`)
}

/** Waits until the object store has the log of the node, and returns what another node reads there. */
export async function waitForStoredLog(of: TestNode, other: TestNode, sandboxId: string) {
  return waitFor(
    `the log of ${sandboxId}`,
    async () => {
      const stored = await readLog(other, sandboxId, true)
      const own = await readLog(of, sandboxId)
      return own.length > 0 && own.at(-1) === stored.at(-1) && stored
    },
    limit,
  )
}

/** Leaves a program and a file in memory, and a file on the disk. */
export async function leaveTraces(node: TestNode, sandboxId: string): Promise<void> {
  await shell(node, sandboxId, 'echo in memory > /dev/shm/trace; echo on disk > /home/user/trace')
  await shell(node, sandboxId, 'nohup sleep 86399 > /dev/null 2>&1 & sync')
}

export async function checkTraces(node: TestNode, sandboxId: string): Promise<void> {
  const found = await shell(
    node,
    sandboxId,
    'cat /dev/shm/trace /home/user/trace; pgrep --full --exact "sleep 86399" > /dev/null && echo runs',
  )
  assert.equal(found, 'in memory\non disk\nruns')
}
