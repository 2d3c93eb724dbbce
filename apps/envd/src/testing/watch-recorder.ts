/** Reads a WatchDir stream in the background and records its events. */
import { setTimeout as sleep } from 'node:timers/promises'
import { ConnectError } from '@connectrpc/connect'
import type { Client } from '@connectrpc/connect'
import { EventType } from '@atoll/contracts/gen/filesystem/filesystem_pb'
import type { Filesystem, FilesystemEvent } from '@atoll/contracts/gen/filesystem/filesystem_pb'
import { waitFor } from '@atoll/kit/wait'

export interface Watching extends AsyncDisposable {
  readonly events: FilesystemEvent[]
  /** Events as lines such as `CREATE a.txt`. */
  lines(): string[]
  keepalives(): number
  /** Waits until these lines have arrived in this order, possibly with others in between. */
  saw(...lines: string[]): Promise<void>
  readonly failure: Promise<ConnectError | undefined>
}

export async function watchFolder(
  files: Client<typeof Filesystem>,
  request: Parameters<Client<typeof Filesystem>['watchDir']>[0],
  headers: Record<string, string> = {},
): Promise<Watching> {
  const leave = new AbortController()
  const events: FilesystemEvent[] = []
  const started = Promise.withResolvers<void>()
  let keepalives = 0
  const failure = read().then(
    () => undefined,
    (error: unknown) => ConnectError.from(error),
  )
  await Promise.race([started.promise, failure.then((error) => error && Promise.reject(error))])
  const lines = () => events.map(({ type, name }) => `${EventType[type]} ${name}`)
  return {
    events,
    lines,
    failure,
    keepalives: () => keepalives,
    async saw(...expected) {
      await waitFor(expected.join(', '), () => isWithin(expected, lines())).catch(
        (error: unknown) => {
          throw new Error(`${String(error)}; there were ${lines().join(', ')}`, { cause: error })
        },
      )
    },
    async [Symbol.asyncDispose]() {
      leave.abort()
      await Promise.race([failure, sleep(5000, undefined, { ref: false })])
    },
  }

  async function read(): Promise<void> {
    for await (const { event } of files.watchDir(request, { signal: leave.signal, headers })) {
      if (event.case === 'start') started.resolve()
      if (event.case === 'keepalive') keepalives += 1
      if (event.case === 'filesystem') events.push(event.value)
    }
  }
}

function isWithin(expected: readonly string[], lines: readonly string[]): boolean {
  let at = 0
  for (const line of lines) if (line === expected[at]) at += 1
  return at === expected.length
}
