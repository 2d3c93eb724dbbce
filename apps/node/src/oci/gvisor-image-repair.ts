import { open } from 'node:fs/promises'
import { setImmediate as turn } from 'node:timers/promises'
import { openImage, UnknownImage } from './gvisor-image.ts'
import { walkImage } from './gvisor-image-graph.ts'

/*
 * gVisor 20240729 reports events after a restore for descriptors that were removed from an epoll set and closed long
 * before. epoll_wait leaves the members that it found idle linked to each other (EpollInstance.ReadEvents, `notReady`),
 * and removing an idle member does not unlink it. So a removed member is saved along with its former neighbours, and a
 * load marks every member that was saved as ready (epollInterest.afterLoad), whether or not its set still has it. A
 * closed TCP connection is always readable, and a program cannot remove it a second time: programs that keep pointers
 * in their events crash, others spin. A load does not mark a member whose event mask is 0.
 */

/** Parts of a saved image that make copies fail. */
export interface ImageFindings {
  /** File offsets of the event mask bytes of removed epoll members. */
  readonly staleMasks: readonly number[]
  /** Whether a connection that something waits for was aborted, by this save or before it. */
  readonly hasAbortedConnections: boolean
}

/**
 * Clears the event masks of removed epoll members in a saved image. Returns undefined for an image of unknown format,
 * which is left as it is.
 */
export async function repairImage(path: string): Promise<ImageFindings | undefined> {
  await using file = await open(path, 'r+')
  if ((await file.stat()).size > maxImageBytes) return undefined
  const image = await file.readFile()
  const findings = await inspectImage(image).catch((error: unknown) => {
    if (error instanceof UnknownImage) return undefined
    throw error
  })
  if (!findings || findings.staleMasks.length === 0) return findings
  // The highest bit marks a continued varint: keeping it makes a 0 of the same length.
  for (const offset of findings.staleMasks) image[offset] = (image[offset] ?? 0) & 0x80
  await file.write(image, 0, image.length, 0)
  return findings
}

export async function inspectImage(image: Buffer): Promise<ImageFindings> {
  const masks = new Map<number, readonly number[]>()
  const members = new Set<number>()
  const queuesOf = new Map<number, number[]>()
  const withWaiters = new Set<number>()
  let abortedType = -1
  const objects = walkImage(openImage(image), {
    interest: (id, offsets) => masks.set(id, offsets),
    member: (id) => members.add(id),
    connection: (queueId, errorType) =>
      queuesOf.set(errorType, [...(queuesOf.get(errorType) ?? []), queueId]),
    waiters: (queueId) => withWaiters.add(queueId),
    type(typeId, name) {
      if (name === 'pkg/tcpip.ErrConnectionAborted') abortedType = typeId
    },
  })
  let began = performance.now()
  for (const _object of objects) {
    if (performance.now() - began < sliceMs) continue
    await turn()
    began = performance.now()
  }
  const staleMasks = [...masks].flatMap(([id, offsets]) => (members.has(id) ? [] : offsets))
  const aborted = queuesOf.get(abortedType) ?? []
  return { staleMasks, hasAbortedConnections: aborted.some((queue) => withWaiters.has(queue)) }
}

/** Time slice before other work of this process gets a turn. */
const sliceMs = 5

/** Size limit. Memory pages are in separate files; a sandbox with a thousand processes stays far below it. */
const maxImageBytes = 64 * 1024 * 1024
