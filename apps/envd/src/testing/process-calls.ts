import { ConnectError } from '@connectrpc/connect'
import type { Code } from '@connectrpc/connect'
import type { ProcessEvent } from '@atoll/contracts/gen/process/process_pb'
import type { ProcessEnd } from '../domain/process/process-end.ts'

export interface Collected {
  readonly pid: number
  readonly stdout: string
  readonly stderr: string
  readonly pty: string
  readonly end: Partial<ProcessEnd> | undefined
  /** Kinds of the events, in order. */
  readonly kinds: readonly string[]
  readonly largest: number
}

/** Reads an event stream to its end. */
export async function collect(
  stream: AsyncIterable<{ readonly event?: ProcessEvent | undefined }>,
): Promise<Collected> {
  const bytes = { stdout: [] as Uint8Array[], stderr: [] as Uint8Array[], pty: [] as Uint8Array[] }
  const kinds: string[] = []
  let pid = 0
  let end: Partial<ProcessEnd> | undefined
  for await (const { event } of stream) {
    const happened = event?.event
    if (happened?.case === undefined) throw new Error('an empty event')
    kinds.push(happened.case)
    if (happened.case === 'start') pid = happened.value.pid
    if (happened.case === 'end') {
      const { exitCode, exited, status, error } = happened.value
      end = { exitCode, exited, status, ...(error !== undefined && { error }) }
    }
    if (happened.case === 'data' && happened.value.output.case !== undefined) {
      bytes[happened.value.output.case].push(happened.value.output.value)
    }
  }
  const all = [...bytes.stdout, ...bytes.stderr, ...bytes.pty]
  return {
    pid,
    stdout: text(bytes.stdout),
    stderr: text(bytes.stderr),
    pty: text(bytes.pty),
    end,
    kinds,
    largest: Math.max(0, ...all.map((chunk) => chunk.length)),
  }
}

/** Opens a stream, waits for its start event, and returns the rest of the stream. */
export async function begin<T extends { readonly event?: ProcessEvent | undefined }>(
  stream: AsyncIterable<T>,
): Promise<{ readonly pid: number; readonly rest: AsyncIterableIterator<T> }> {
  const iterator = stream[Symbol.asyncIterator]()
  const first = await iterator.next()
  const started = first.done ? undefined : first.value.event?.event
  if (started?.case !== 'start') throw new Error('the stream did not begin with start')
  const rest: AsyncIterableIterator<T> = {
    next: () => iterator.next(),
    [Symbol.asyncIterator]: () => rest,
  }
  return { pid: started.value.pid, rest }
}

function text(chunks: readonly Uint8Array[]): string {
  return Buffer.concat(chunks).toString('utf8')
}

/** Builds a Start request for a shell script, without stdin. */
export function shell(script: string, more: object = {}) {
  return { process: { cmd: '/bin/sh', args: ['-c', script], ...more }, stdin: false }
}

export function byPid(pid: number) {
  return { selector: { case: 'pid', value: pid } } as const
}

export function byTag(tag: string) {
  return { selector: { case: 'tag', value: tag } } as const
}

/** Returns the error code of a call, or undefined if it succeeds. */
export async function codeOf(call: Promise<unknown>): Promise<Code | undefined> {
  return call.then(
    () => undefined,
    (error: unknown) => ConnectError.from(error).code,
  )
}
