import { randomBytes } from 'node:crypto'
import { realpath } from 'node:fs/promises'
import { posix, resolve } from 'node:path'
import { basename } from 'node:path'
import type { SandboxFiles } from '@atoll/client/sandbox-files'
import { Fault } from '@atoll/kit/fault'
import type { Access } from '../access.ts'
import type { SandboxAddress } from '../attach.ts'
import { UsageError } from '../failure.ts'
import { counted } from '../output/progress.ts'
import { visibleText } from '../output/visible-text.ts'
import { listTree } from '../tar/local-tree.ts'
import { tarChunks, tarSize } from '../tar/write.ts'
import { capture } from './capture.ts'

export interface Upload {
  readonly access: Access
  readonly address: SandboxAddress
  readonly files: SandboxFiles
  /** Path in the sandbox. */
  readonly target: string
  onBytes(sent: number, total: number): void
}

/** Copies a local file or folder into the sandbox, with its modes. Symlinks inside a folder stay symlinks. */
export async function uploadFrom(source: string, upload: Upload): Promise<void> {
  const real = await realpath(source).catch((error: NodeJS.ErrnoException) => {
    throw new UsageError(`${source} cannot be read: ${error.message}`)
  })
  const tree = await listTree(real)
  const isFolder = tree[0]?.kind === 'directory'
  const { folder, name } = await remotePlace(upload, basename(resolve(source)), isFolder)
  const entries = tree.map((entry) => ({
    ...entry,
    path: entry.path === '' ? name : `${name}/${entry.path}`,
  }))
  const sizeBytes = tarSize(entries)
  const archive = `/tmp/.atoll-cp-${randomBytes(12).toString('hex')}.tar`
  const report = (sent: number) => upload.onBytes(sent, sizeBytes)
  const chunks = counted(tarChunks(entries), report)
  await upload.files.write(archive, { chunks, sizeBytes })
  await unpack(upload, archive, await toAbsolute(folder, upload))
}

/** Writes what a stream brings into a file of the sandbox. */
export async function uploadContent(
  chunks: AsyncIterable<Uint8Array>,
  { files, target }: Upload,
): Promise<void> {
  const found = await files.find(target)
  if (found?.kind === 'directory' || target.endsWith('/')) {
    throw new UsageError(`${target} is a folder: name a file.`)
  }
  await files.write(target, { chunks })
}

interface RemotePlace {
  readonly folder: string
  readonly name: string
}

/** Names the copy in an existing folder after the source. */
async function remotePlace(
  { files, target }: Upload,
  sourceName: string,
  isFolder: boolean,
): Promise<RemotePlace> {
  const found = await files.find(target)
  if (found?.kind === 'directory' || target.endsWith('/')) {
    return { folder: target, name: sourceName }
  }
  if (found && isFolder) throw new UsageError(`${target} is a file, but the source is a folder.`)
  return { folder: posix.dirname(target), name: posix.basename(target) }
}

/** Commands begin in the working directory of the template, but paths of files at the home of the user. */
async function toAbsolute(folder: string, { files }: Upload): Promise<string> {
  if (folder.startsWith('/')) return folder
  const home = await files.find('.')
  return posix.resolve(home?.path ?? '/', folder)
}

/** Removes the archive in any case. Owners are those of the user who unpacks. */
const unpackScript =
  'mkdir -p -- "$1" && tar -xpof "$2" -C "$1"; code=$?; rm -f -- "$2"; exit "$code"'

async function unpack({ access, address }: Upload, archive: string, folder: string) {
  const command = ['/bin/sh', '-c', unpackScript, 'sh', folder, archive]
  const { exitCode, stderr } = await capture(access, address, command)
  if (exitCode === 0) return
  const reason = visibleText(stderr.slice(0, 4096).trim()) || `exit code ${exitCode}`
  throw new Fault('invalid', 'copy_refused', `The sandbox could not write to ${folder}: ${reason}`)
}
