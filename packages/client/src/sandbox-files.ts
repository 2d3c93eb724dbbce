import { FileType, Filesystem } from '@atoll/contracts/gen/filesystem/filesystem_pb'
import type { EntryInfo } from '@atoll/contracts/gen/filesystem/filesystem_pb'
import { createClient } from '@connectrpc/connect'
import { faultFromConnect } from './connect-fault.ts'
import { faultFromReply } from './http-fault.ts'
import { createSandboxTransport, headersOf } from './sandbox.ts'
import type { SandboxOptions } from './sandbox.ts'
import { readText, transfer } from './transfer.ts'
import type { TransferBody, TransferReply } from './transfer.ts'

/**
 * Files of one sandbox. Every failure is a `Fault`. Threats: everything that a sandbox answers is the attacker's, also
 * sizes, names and modes.
 */
export interface SandboxFiles {
  /** Follows symlinks. Returns undefined if nothing has this path. */
  find(path: string, signal?: AbortSignal): Promise<FoundEntry | undefined>
  /** Reads a file. The content may be longer than `sizeBytes`. */
  read(path: string, signal?: AbortSignal): Promise<TransferReply>
  /** Writes a file and creates missing folders. */
  write(path: string, body: TransferBody, signal?: AbortSignal): Promise<void>
}

export interface FoundEntry {
  readonly kind: 'file' | 'directory' | 'other'
  /** Absolute. */
  readonly path: string
  /** Permission bits. */
  readonly mode: number
}

export function createSandboxFiles(options: SandboxOptions): SandboxFiles {
  const client = createClient(Filesystem, createSandboxTransport(options))
  const headers = headersOf(options)
  const urlOf = (path: string) => {
    const url = new URL(`${options.url.replace(/\/+$/, '')}/files`)
    url.searchParams.set('path', path)
    if (options.user) url.searchParams.set('username', options.user)
    return url.href
  }
  return {
    async find(path, signal) {
      try {
        const { entry } = await client.stat({ path }, { ...(signal && { signal }) })
        return entry && toFound(entry)
      } catch (thrown) {
        signal?.throwIfAborted()
        const fault = faultFromConnect(thrown, options.url)
        if (fault.kind === 'not_found') return undefined
        throw fault
      }
    },
    async read(path, signal) {
      return accepted(await transfer({ method: 'GET', url: urlOf(path), headers, signal }))
    },
    async write(path, body, signal) {
      const typed = { ...headers, 'content-type': 'application/octet-stream' }
      const request = { method: 'POST', url: urlOf(path), headers: typed, body, signal } as const
      await readText(await accepted(await transfer(request)))
    },
  }
}

function toFound({ type, path, mode }: EntryInfo): FoundEntry {
  const kind = kinds.get(type) ?? 'other'
  return { kind, path, mode: mode & 0o777 }
}

const kinds: ReadonlyMap<FileType, FoundEntry['kind']> = new Map([
  [FileType.FILE, 'file'],
  [FileType.DIRECTORY, 'directory'],
])

async function accepted(reply: TransferReply): Promise<TransferReply> {
  if (reply.status < 300) return reply
  const text = await readText(reply)
  throw faultFromReply(reply.status, parseJson(text))
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
