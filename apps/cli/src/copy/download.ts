import { randomBytes } from 'node:crypto'
import { constants, lstat, mkdir, open, rename, rm, stat } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { posix } from 'node:path'
import type { FoundEntry, SandboxFiles } from '@atoll/client/sandbox-files'
import { Fault } from '@atoll/kit/fault'
import type { Access } from '../access.ts'
import { attach } from '../attach.ts'
import type { SandboxAddress } from '../attach.ts'
import { exitCodeOf } from '../exit-code.ts'
import { UsageError } from '../failure.ts'
import { visibleName, visibleText } from '../output/visible-text.ts'
import { createTarReader } from '../tar/read.ts'
import { extractInto, tooMuch, writeAll } from './extract.ts'

export interface Download {
  readonly access: Access
  readonly address: SandboxAddress
  readonly files: SandboxFiles
  /** Path in the sandbox. */
  readonly source: string
  readonly limitBytes: number
  warn(message: string): void
  onBytes(total: number, expected: number | undefined): void
}

const limitEntries = 1_000_000

/** Copies a file or a folder to a local path, and returns that path. */
export async function downloadTo(target: string, download: Download): Promise<string> {
  const entry = await findSource(download)
  const place = await localPlace(target, download.source)
  if (entry.kind === 'file') await downloadFile(place, entry, download)
  else await downloadFolder(place, entry, download)
  return place
}

/** Downloads the content of a file in pieces. */
export async function downloadContent(
  download: Download,
  write: (bytes: Uint8Array) => Promise<void>,
): Promise<void> {
  const entry = await findSource(download)
  if (entry.kind !== 'file')
    throw new UsageError(`${download.source} is a folder: name a target folder.`)
  await readContent(download, write)
}

async function findSource({ files, source }: Download): Promise<FoundEntry> {
  const entry = await files.find(source)
  if (!entry)
    throw new Fault('not_found', 'copy_source_absent', `${source} does not exist in the sandbox`)
  if (entry.kind !== 'other') return entry
  const message = `${source} is neither a file nor a folder, so it cannot be copied`
  throw new Fault('invalid', 'copy_source_special', message)
}

/** Names the copy in an existing folder after the source path that the user typed, never after a name from the sandbox. */
async function localPlace(target: string, source: string): Promise<string> {
  const found = await stat(target).catch(() => undefined)
  const name = posix.basename(posix.normalize(source))
  if (found?.isDirectory()) return ['', '.', '..', '/'].includes(name) ? target : join(target, name)
  if (target.endsWith('/'))
    throw new UsageError(`The folder ${target} does not exist: create it first.`)
  const parent = await stat(dirname(target)).catch(() => undefined)
  if (parent?.isDirectory()) return target
  throw new UsageError(`The folder ${dirname(target)} does not exist: create it first.`)
}

/** Writes beside the target and renames, so that a broken copy never has the name of the file. */
async function downloadFile(
  place: string,
  { mode }: FoundEntry,
  download: Download,
): Promise<void> {
  const found = await lstat(place).catch(() => undefined)
  if (found?.isDirectory())
    throw new UsageError(`${place} is a folder: name a file, or another folder.`)
  const temporary = join(
    dirname(place),
    `.${basename(place).slice(0, 100)}.${randomBytes(6).toString('hex')}`,
  )
  const flags = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW
  const file = await open(temporary, flags, mode | 0o600)
  try {
    await readContent(download, (bytes) => writeAll(file, bytes))
    await file.close()
    await rename(temporary, place)
  } catch (thrown) {
    await file.close().catch(() => {})
    await rm(temporary, { force: true })
    throw thrown
  }
}

async function readContent(
  { files, source, limitBytes, onBytes }: Download,
  write: (bytes: Uint8Array) => Promise<void>,
): Promise<void> {
  const { content, sizeBytes } = await files.read(source)
  let total = 0
  for await (const piece of content) {
    total += piece.length
    if (total > limitBytes) throw tooMuch(`${limitBytes} bytes`)
    await write(piece)
    onBytes(total, sizeBytes)
  }
}

async function downloadFolder(
  place: string,
  { path }: FoundEntry,
  download: Download,
): Promise<void> {
  const found = await lstat(place).catch(() => undefined)
  const isFolder = found?.isSymbolicLink()
    ? (await stat(place).catch(() => undefined))?.isDirectory()
    : found?.isDirectory()
  if (found && !isFolder)
    throw new UsageError(`${place} is not a folder, but the source is: choose another target.`)
  if (!found) await mkdir(place)
  const { access, address, source, limitBytes, warn, onBytes } = download
  const extraction = extractInto(place, {
    ...{ limitBytes, limitEntries },
    warn: (message) => warn(visibleName(message)),
    onBytes: (total) => onBytes(total, undefined),
  })
  const reader = createTarReader(extraction)
  let errorOutput = ''
  const stopped = new AbortController()
  const stop = (reason: unknown) => stopped.abort(reason)
  try {
    const end = await attach(
      access,
      address,
      // A script, because the path may begin with a dash.
      { process: { cmd: '/bin/sh', args: ['-c', packScript, 'sh', path] }, stdin: false },
      {
        onStart: () => {},
        async onOutput(output) {
          // Aborts with the reader's error; `attach` would report a lost connection.
          if (output.case === 'stdout') await reader.write(output.value).catch(stop)
          else if (errorOutput.length < 4096)
            errorOutput += Buffer.from(output.value ?? []).toString()
        },
      },
      { signal: stopped.signal },
    )
    const exitCode = exitCodeOf(end)
    if (exitCode === 0) reader.finish()
    await extraction.finish()
    if (exitCode !== 0) throw packFailed(source, errorOutput)
  } finally {
    stopped.abort()
    await extraction.close()
  }
}

const packScript = 'cd -- "$1" && exec tar -cf - .'

function packFailed(source: string, errorOutput: string): Fault {
  const reason = visibleText(errorOutput.trim()) || 'tar failed without a message'
  const message = `Not all of ${source} was copied: ${reason}`
  return new Fault('invalid', 'copy_incomplete', message)
}
