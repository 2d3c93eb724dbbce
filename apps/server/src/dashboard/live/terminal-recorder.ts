/** Records one terminal while its user wants that. A failed recording leaves the terminal alone. */
import { Fault } from '@atoll/kit/fault'
import type { Recording } from '../recordings/recording-file.ts'
import type { Recordings } from '../recordings/recordings.ts'
import type { ChannelPort } from './channel.ts'
import type { TerminalSize } from './messages.ts'

export interface TerminalRecorder {
  /** `id` continues a recording. */
  start(size: TerminalSize, id?: string): void
  stop(): void
  write(bytes: Uint8Array): void
  resize(size: TerminalSize): void
}

export function createTerminalRecorder(
  port: ChannelPort,
  parts: {
    readonly recordings: Recordings
    readonly sandboxId: string
    /** Team of the session. */
    findTeam(): Promise<string>
  },
): TerminalRecorder {
  let current: Recording | undefined
  let isStarting = false
  const finish = () => {
    // A failed write was reported when it happened.
    current?.close().catch(() => {})
    current = undefined
  }
  const tellStopped = (reason?: string) =>
    port.send({ recording: null, ...(reason !== undefined && { reason }) })
  const open = async (size: TerminalSize, id: string | undefined) => {
    const recording = await parts.recordings.start({
      teamId: await parts.findTeam(),
      sandboxId: parts.sandboxId,
      ...{ size, id },
      onStopped(reason) {
        finish()
        tellStopped(reason)
      },
    })
    current = recording
    // The page may have closed the terminal, or changed its mind.
    if (port.signal.aborted || !isStarting) return finish()
    isStarting = false
    if (id !== undefined) recording.resize(size)
    return port.send({ recording: { id: recording.id } })
  }
  port.signal.addEventListener('abort', finish, { once: true })
  return {
    start(size, id) {
      if (current || isStarting) return
      isStarting = true
      open(size, id).catch((thrown: unknown) => {
        isStarting = false
        tellStopped(Fault.from(thrown).message)
      })
    },
    stop() {
      isStarting = false
      finish()
      tellStopped()
    },
    write: (bytes) => current?.write(bytes),
    resize: (size) => current?.resize(size),
  }
}
