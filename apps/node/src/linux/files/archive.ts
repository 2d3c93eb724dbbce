/**
 * Archives of folders, compressed with zstd. They keep owners, modes, times, extended attributes, devices and holes, so
 * a layer or a disk is the same on another machine. Threats: the files are untrusted, so tar neither follows links in
 * them nor accepts paths outside the folder; and it gets no byte that was not authenticated before.
 */
import { spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { Readable } from 'node:stream'
import type { Writable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { constants, createZstdCompress, createZstdDecompress } from 'node:zlib'

const level = { params: { [constants.ZSTD_c_compressionLevel]: 1 } }

const packOptions = [
  ...['--create', '--sort=name', '--numeric-owner', '--format=posix', '--sparse'],
  ...['--pax-option=exthdr.name=%d/PaxHeaders/%f,delete=atime,delete=ctime'],
  ...['--xattrs', '--xattrs-include=*'],
]
const unpackOptions = [
  ...['--extract', '--numeric-owner', '--same-owner', '--preserve-permissions'],
  ...['--delay-directory-restore', '--xattrs', '--xattrs-include=*'],
]

/** Streams an archive of a folder. Fails at the end if a file changed or disappeared meanwhile. */
export async function* packFolder(dir: string): AsyncGenerator<Buffer> {
  const tar = spawn('tar', [...packOptions, '--directory', dir, '.'], {
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const ended = endOf(tar)
  const packed = createZstdCompress(level)
  const piped = pipeline(tar.stdout, packed)
  piped.catch(() => {}) // awaited below, unless the reader leaves before
  try {
    for await (const piece of packed) yield piece
    await piped
    await ended(`archive ${dir}`)
  } finally {
    tar.kill('SIGKILL')
  }
}

/** Unpacks an archive into an empty folder. A failure leaves the folder half filled. Reads the archive to its end. */
export async function unpackFolder(archive: AsyncIterable<Uint8Array>, dir: string): Promise<void> {
  const tar = spawn('tar', [...unpackOptions, '--directory', dir], {
    stdio: ['pipe', 'ignore', 'pipe'],
  })
  const ended = endOf(tar)
  try {
    const source = Readable.from(archive, { objectMode: false })
    await pipeline(source, createZstdDecompress(), (plain: AsyncIterable<Buffer>) =>
      feed(plain, tar.stdin),
    )
    await ended(`fill ${dir}`)
  } finally {
    tar.kill('SIGKILL')
  }
}

/** tar may stop reading at the end mark of the archive, before its input ends. */
async function feed(plain: AsyncIterable<Buffer>, input: Writable): Promise<void> {
  // Errors are ignored: the exit status of tar has the reason.
  input.on('error', () => {})
  for await (const piece of plain) {
    if (!input.writable || input.write(piece)) continue
    const waited = new AbortController()
    const next = (event: string) => once(input, event, { signal: waited.signal })
    await Promise.race([next('drain'), next('close')]).catch(() => {})
    waited.abort()
  }
  input.end()
}

/** Returns a function that waits for the end of tar, and throws if tar failed. */
function endOf(tar: ChildProcess): (what: string) => Promise<void> {
  let errors = ''
  tar.stderr?.on('data', (chunk: Buffer) => (errors = `${errors}${String(chunk)}`.slice(-2000)))
  const ended = once(tar, 'close')
  ended.catch(() => {})
  return async (what) => {
    const [code] = await ended
    if (code !== 0) throw new Error(`tar could not ${what} (exit ${code}): ${errors}`)
  }
}
