/**
 * Recordings of terminals, as asciicast files below `DATA/dashboard-recordings/<team>`. Off unless a user starts one. Only output is
 * recorded: what is typed appears where the program echoes it, so passwords do not.
 */
import { createReadStream } from 'node:fs'
import type { ReadStream } from 'node:fs'
import { mkdir, open, readdir, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import type { Clock } from '@atoll/kit/clock'
import { Fault } from '@atoll/kit/fault'
import { randomHex } from '@atoll/kit/id'
import { formatHeader } from './asciicast.ts'
import type { CastSize } from './asciicast.ts'
import { createRecording, wholeLinesSize } from './recording-file.ts'
import type { Recording } from './recording-file.ts'

export interface RecordingInfo {
  readonly id: string
  readonly sandboxId: string
  readonly startedAt: string
  readonly endedAt: string
  readonly sizeBytes: number
  /** True while a terminal writes to it. */
  readonly isOpen: boolean
}

export interface StartRequest {
  readonly teamId: string
  readonly sandboxId: string
  readonly size: CastSize
  /** A recording of this sandbox to continue, after the page lost its connection. */
  readonly id?: string | undefined
  onStopped(reason: string): void
}

export interface Recordings {
  start(request: StartRequest): Promise<Recording>
  /** Newest first. */
  list(teamId: string): Promise<RecordingInfo[]>
  read(teamId: string, id: string): Promise<{ readonly stream: ReadStream; readonly size: number }>
  remove(teamId: string, id: string): Promise<void>
  /** Removes recordings that are too old. */
  collect(): Promise<void>
  close(): Promise<void>
}

export interface RecordingLimits {
  readonly maxBytes: number
  readonly maxTeamBytes: number
  readonly maxTeamRecordings: number
  readonly keptDays: number
}

export const recordingLimits: RecordingLimits = {
  maxBytes: 16 * 2 ** 20,
  maxTeamBytes: 512 * 2 ** 20,
  maxTeamRecordings: 200,
  keptDays: 30,
}

const dayMs = 24 * 60 * 60 * 1_000
const teamPattern = /^[\w-]{1,64}$/
const idPattern = /^([0-9]{13})-([a-z0-9]{1,63})-[0-9a-f]{8}$/
const extension = '.cast'

export function createRecordings(
  folder: string,
  clock: Clock,
  limits: RecordingLimits = recordingLimits,
): Recordings {
  const live = new Map<string, Recording>()
  const folderOf = (teamId: string) => {
    if (!teamPattern.test(teamId)) throw noRecording()
    return join(folder, teamId)
  }
  const pathOf = (teamId: string, id: string) => {
    if (!idPattern.test(id)) throw noRecording()
    return join(folderOf(teamId), `${id}${extension}`)
  }
  const list = async (teamId: string) => {
    const found = await listFiles(folderOf(teamId))
    return found.map((info) => ({ ...info, isOpen: live.has(info.id) }))
  }
  const refuseTooMany = async (teamId: string) => {
    const known = await list(teamId)
    const bytes = known.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0)
    const isFull = known.length >= limits.maxTeamRecordings || bytes >= limits.maxTeamBytes
    if (!isFull) return
    const message = `The team has ${known.length} recordings with ${Math.round(bytes / 2 ** 20)} MiB; the limits are ${limits.maxTeamRecordings} recordings and ${limits.maxTeamBytes / 2 ** 20} MiB. Delete some.`
    throw new Fault('exhausted', 'recordings_full', message)
  }
  const openNew = async ({ teamId, sandboxId, size }: StartRequest) => {
    await refuseTooMany(teamId)
    const startedAt = clock.now()
    const id = `${startedAt.getTime()}-${sandboxId}-${randomHex(4)}`
    await mkdir(folderOf(teamId), { recursive: true, mode: 0o700 })
    const file = await open(pathOf(teamId, id), 'ax', 0o600)
    const header = formatHeader(size, startedAt, `sandbox ${sandboxId}`)
    await file.appendFile(header)
    return { id, file, size: header.length }
  }
  const openAgain = async ({ teamId, sandboxId }: StartRequest, id: string) => {
    if (idPattern.exec(id)?.[2] !== sandboxId) throw noRecording()
    const path = pathOf(teamId, id)
    await live.get(id)?.close() // a lost connection may still hold the file
    const size = await wholeLinesSize(path).catch(toNoRecording)
    const file = await open(path, 'a')
    await file.truncate(size)
    return { id, file, size }
  }
  return {
    async start(request) {
      const { id, file, size } = await (request.id === undefined
        ? openNew(request)
        : openAgain(request, request.id))
      const startedAtMs = Number(idPattern.exec(id)?.[1])
      const recording = createRecording({
        ...{ id, file, size, maxBytes: limits.maxBytes },
        elapsedSeconds: () => Math.max(0, (clock.now().getTime() - startedAtMs) / 1_000),
        onStopped: request.onStopped,
        onClosed: () => live.delete(id),
      })
      live.set(id, recording)
      return recording
    },
    list,
    async read(teamId, id) {
      const path = pathOf(teamId, id)
      const size = await wholeLinesSize(path).catch(toNoRecording)
      return { stream: createReadStream(path, { start: 0, end: Math.max(0, size - 1) }), size }
    },
    async remove(teamId, id) {
      const path = pathOf(teamId, id)
      await live.get(id)?.close()
      await rm(path).catch(toNoRecording)
    },
    async collect() {
      const oldest = clock.now().getTime() - limits.keptDays * dayMs
      for (const teamId of await readdir(folder).catch(() => [])) {
        if (!teamPattern.test(teamId)) continue
        for (const { id, endedAt } of await listFiles(join(folder, teamId))) {
          const isOld = Date.parse(endedAt) < oldest && !live.has(id)
          if (isOld) await rm(pathOf(teamId, id), { force: true })
        }
      }
    },
    async close() {
      await Promise.all([...live.values()].map((recording) => recording.close()))
    },
  }
}

/** Files with other names are not recordings: they are neither listed nor removed. */
async function listFiles(folder: string): Promise<Omit<RecordingInfo, 'isOpen'>[]> {
  const names = await readdir(folder).catch(() => [])
  const found: Omit<RecordingInfo, 'isOpen'>[] = []
  for (const name of names.toSorted((a, b) => (a > b ? -1 : 1))) {
    const id = name.endsWith(extension) ? name.slice(0, -extension.length) : ''
    const [, startedAtMs, sandboxId] = idPattern.exec(id) ?? []
    if (startedAtMs === undefined || sandboxId === undefined) continue
    const info = await stat(join(folder, name)).catch(() => undefined)
    if (!info?.isFile()) continue
    const startedAt = new Date(Number(startedAtMs)).toISOString()
    found.push({
      id,
      sandboxId,
      startedAt,
      endedAt: info.mtime.toISOString(),
      sizeBytes: info.size,
    })
  }
  return found
}

function noRecording(): Fault {
  return new Fault('not_found', 'no_recording', 'There is no such recording')
}

function toNoRecording(error: unknown): never {
  if (error instanceof Error && 'code' in error && error.code === 'ENOENT') throw noRecording()
  throw error
}
