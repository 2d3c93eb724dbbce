import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { run } from '@atoll/kit/run'
import { waitFor } from '@atoll/kit/wait'
import { z } from 'zod'
import { changeKinds, entryTypes } from '../../domain/sandboxes/changes.ts'
import type { ChangedContent, ChangeList, ListQuery } from '../../domain/sandboxes/changes.ts'
import type { MountNamespace } from '../mounts/mount-namespace.ts'
import { loopDevicesBelow } from '../disks/loop-devices.ts'

/** Disk of a cell: mounted in the namespace, or an image that nothing has mounted. */
export interface InspectedDisk {
  readonly cellId: string
  /** Folder of the cell, which holds the image. */
  readonly cellDir: string
  /** Absent: the disk is mounted. */
  readonly image?: string
  /** Folders of the template's layers, lowest first. */
  readonly layers: readonly string[]
}

/** Inspects disks. The caller makes sure that the disk stays mounted, or stays unmounted. */
export interface DiskInspector {
  list(disk: InspectedDisk, query: ListQuery, signal: AbortSignal): Promise<ChangeList>
  /** Returns undefined if the sandbox has not changed this entry. */
  read(
    disk: InspectedDisk,
    query: { readonly path: Buffer; readonly maxBytes: number },
    signal: AbortSignal,
  ): Promise<ChangedContent | undefined>
}

/** Request to the program. Paths are in base64, because they need not be text. */
export interface InspectionRequest {
  /** Mount point of the disk. */
  readonly disk: string
  readonly image?: string | undefined
  readonly layers: readonly string[]
  readonly list?: {
    readonly path: string
    readonly after?: string | undefined
    readonly limit: number
  }
  readonly read?: { readonly path: string; readonly maxBytes: number }
}

export type InspectionReply = z.input<typeof Reply>

const Bytes = z.string().transform((text) => Buffer.from(text, 'base64'))

const Side = z.object({
  type: z.enum(entryTypes),
  sizeBytes: z.number(),
  mode: z.number(),
  content: Bytes,
  isTruncated: z.boolean(),
})

const Reply = z.object({
  changes: z
    .array(
      z.object({
        path: Bytes,
        kind: z.enum(changeKinds),
        type: z.enum(entryTypes),
        sizeBytes: z.number(),
        mode: z.number(),
        modifiedAtMs: z.number(),
      }),
    )
    .optional(),
  next: Bytes.optional(),
  isComplete: z.boolean().optional(),
  content: z.object({ before: Side.optional(), after: Side.optional() }).optional(),
})

export function createDiskInspector(parts: {
  readonly namespace: MountNamespace
  readonly mountsDir: string
}): DiskInspector {
  async function inspect(
    { cellId, cellDir, image, layers }: InspectedDisk,
    query: Pick<InspectionRequest, 'list' | 'read'>,
    signal: AbortSignal,
  ): Promise<z.output<typeof Reply>> {
    const disk = image === undefined ? join(parts.mountsDir, 'disk', cellId) : parts.mountsDir
    const request: InspectionRequest = { disk, layers, ...(image && { image }), ...query }
    const options = { input: JSON.stringify(request), timeoutMs: limitMs, signal }
    if (image === undefined) return parse(await parts.namespace.run('nice', niceProgram, options))
    // The folder is in memory: after a reboot no cell has made it yet.
    await mkdir(parts.mountsDir, { recursive: true, mode: 0o711 })
    try {
      const command = [...ownNamespaces, 'nice', ...niceProgram]
      return parse(await run('setpriv', command, { ...options, awaitsEnd: true }))
    } finally {
      // A resume would get the read-only loop device while it is there.
      const isFree = async () => (await loopDevicesBelow(cellDir)).length === 0
      await waitFor('the disk of a paused sandbox to be free', isFree, { timeoutMs: releaseMs })
    }
  }

  return {
    async list(disk, { path, after, limit }, signal) {
      const list = { path: toText(path), limit, ...(after && { after: toText(after) }) }
      const { changes = [], isComplete = true, next } = await inspect(disk, { list }, signal)
      return { changes, isComplete, ...(next && { next }) }
    },
    async read(disk, { path, maxBytes }, signal) {
      const { content } = await inspect(disk, { read: { path: toText(path), maxBytes } }, signal)
      if (!content) return undefined
      const { before, after } = content
      return { ...(before && { before }), ...(after && { after }) }
    },
  }
}

/**
 * Mounts and children of the program end with it, also when it is killed: `mount` would otherwise keep running and attach a loop
 * device. The namespace is a copy of the server's, which has no disk of a sandbox: a copy of the namespace of the
 * sandboxes would keep their disks mounted.
 */
const ownNamespaces = [
  ...['--pdeathsig', 'KILL', 'unshare', '--mount', '--propagation', 'private'],
  ...['--pid', '--fork', '--kill-child', '--'],
]

/** Arguments of `nice`. The disk decides how much the program does, so its share of CPU and memory is small. */
const niceProgram = [
  ...['-n', '10', process.execPath, '--max-old-space-size=256'],
  join(import.meta.dirname, 'main.ts'),
]
/** The program itself stops after 4 s; the rest is for a busy machine. */
const limitMs = 30_000
const releaseMs = 30_000

function parse(output: string): z.output<typeof Reply> {
  return Reply.parse(JSON.parse(output))
}

function toText(path: Buffer): string {
  return path.toString('base64')
}
