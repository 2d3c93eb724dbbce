/**
 * Program that inspects the disk of one sandbox: `node main.ts < request`. A process of its own, so that a disk with
 * millions of files blocks nothing and can be left at any moment.
 *
 * Threats: the disk is the sandbox's. No link on it is followed, and all that is read from it is bounded.
 */
import { execFileSync } from 'node:child_process'
import { constants, openSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { splitPath, maxPathBytes } from '../../domain/sandboxes/changes.ts'
import type { FileSide } from '../../domain/sandboxes/changes.ts'
import { changedDirectory } from './changed-directory.ts'
import type { ChangedDirectory } from './changed-directory.ts'
import { listChanges } from './list-changes.ts'
import type { InspectionReply, InspectionRequest } from './inspect-disk.ts'
import { readChange } from './read-change.ts'

const bounds = {
  maxVisited: 200_000,
  maxNames: 200_000,
  maxDepth: 256,
  maxBytes: 1024 ** 2,
  timeMs: 4_000,
}

// The caller waits until no process holds the error output, so that it also waits for a `mount` that outlives this program.
const quiet = { stdio: ['ignore', 'ignore', 'inherit'] } satisfies Parameters<
  typeof execFileSync
>[2]

const input: InspectionRequest = JSON.parse(readFileSync(0, 'utf8'))
writeFileSync(1, JSON.stringify(answer(input)))

function answer({ disk, image, layers, ...query }: InspectionRequest): InspectionReply {
  if (image === undefined) return inspect(open(disk, layers), query)
  // The caller has put this process into a mount namespace of its own: the mount ends with the process at the latest.
  execFileSync('mount', ['-n', '-o', 'loop,ro,nodev,noexec,nosuid', image, disk], quiet)
  try {
    using root = open(disk, layers)
    return inspect(root, query)
  } finally {
    execFileSync('umount', ['-n', disk], quiet)
  }
}

function open(disk: string, layers: readonly string[]): ChangedDirectory {
  const flags = constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW
  const lowers = layers.toReversed().map((layer) => openSync(layer, flags))
  return changedDirectory(openSync(join(disk, 'upper'), flags), lowers, false)
}

function inspect(
  root: ChangedDirectory,
  query: Pick<InspectionRequest, 'list' | 'read'>,
): InspectionReply {
  if (query.list) return list(root, query.list)
  if (!query.read) return {}
  const content = readChange(root, namesOf(query.read.path), query.read.maxBytes)
  if (!content) return {}
  const { before, after } = content
  return {
    content: { ...(before && { before: toText(before) }), ...(after && { after: toText(after) }) },
  }
}

function list(
  root: ChangedDirectory,
  asked: NonNullable<InspectionRequest['list']>,
): InspectionReply {
  const { path, after, limit } = asked
  const startedMs = performance.now()
  const request = { path: namesOf(path), after: after === undefined ? undefined : namesOf(after) }
  const page = listChanges(root, request, {
    limit,
    maxPathBytes,
    ...bounds,
    isTimeUp: () => performance.now() - startedMs > bounds.timeMs,
  })
  const { changes, isComplete, next } = page
  return {
    changes: changes.map((change) => ({ ...change, path: change.path.toString('base64') })),
    isComplete,
    ...(next && { next: next.toString('base64') }),
  }
}

function namesOf(base64: string): Buffer[] {
  return splitPath(Buffer.from(base64, 'base64'))
}

function toText({ content, ...side }: FileSide) {
  return { ...side, content: content.toString('base64') }
}
