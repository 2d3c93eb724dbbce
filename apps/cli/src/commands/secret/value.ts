import { createReadStream } from 'node:fs'
import { createInterface } from 'node:readline/promises'
import { Writable } from 'node:stream'
import type { CliContext } from '../../context.ts'
import { UsageError } from '../../failure.ts'

/** Larger than any value that the server takes; bounds what is read. */
const limitBytes = 64 * 1024

/** Reads the value of a secret. The value is never echoed and never part of a message. */
export async function readSecretValue(
  context: CliContext,
  file: string | undefined,
): Promise<string> {
  const text = await readText(context, file)
  const value = text.replace(/\r?\n$/, '')
  if (value === '')
    throw new UsageError('The value is empty: give it on stdin or with --from-file.')
  return value
}

async function readText(context: CliContext, file: string | undefined): Promise<string> {
  if (file !== undefined) return readFile(file)
  if (context.stdin.isTTY) return ask(context)
  return collect(context.stdin)
}

async function readFile(path: string): Promise<string> {
  try {
    return await collect(createReadStream(path))
  } catch (thrown) {
    if (thrown instanceof UsageError) throw thrown
    throw new UsageError(`${path} cannot be read: ${String(thrown)}`)
  }
}

async function collect(chunks: AsyncIterable<string | Uint8Array>): Promise<string> {
  const pieces: Uint8Array[] = []
  let length = 0
  for await (const chunk of chunks) {
    const piece = typeof chunk === 'string' ? Buffer.from(chunk) : chunk
    length += piece.length
    if (length > limitBytes) throw new UsageError('The value is larger than 64 KiB.')
    pieces.push(piece)
  }
  return Buffer.concat(pieces).toString()
}

async function ask({ stdin, stderr }: CliContext): Promise<string> {
  stderr.write('Value: ')
  const silent = new Writable({ write: (_chunk, _encoding, done) => done() })
  const reader = createInterface({ input: stdin, output: silent, terminal: true })
  // Ctrl-D closes the reader without an answer.
  const closed = new Promise<string>((resolve) => reader.once('close', () => resolve('')))
  try {
    return await Promise.race([reader.question(''), closed])
  } finally {
    reader.close()
    stderr.write('\n')
  }
}
