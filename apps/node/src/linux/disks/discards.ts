import { readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { blockDeviceName } from './block-device.ts'
import type { MountNamespace } from '../mounts/mount-namespace.ts'

/** Switches whether deletions on a mounted disk punch holes into its image. */
export interface Discards {
  /** Starts to discard, trims the blocks that were deleted before, and marks the disk as trimmed. */
  startDiscarding(id: string): Promise<void>
  stopDiscarding(id: string): Promise<void>
}

/**
 * Setting of a mounted ext4 that marks the disk as trimmed: how many kernel messages it may log at once, by default 10.
 * The kernel forgets the mark with the mount, and an agent that starts later finds it.
 */
export const trimmedMark = { file: 'msg_ratelimit_burst', value: 11, unmarked: 10 }

/** Allows time to write dirty pages first, which may be gigabytes, and to trim many small holes. */
const limitMs = 240_000

export function createDiscards(namespace: MountNamespace, disksDir: string): Discards {
  const run = async (script: string, id: string) => {
    await namespace.run('sh', ['-euc', script, 'discard', join(disksDir, id)], {
      timeoutMs: limitMs,
    })
  }
  return {
    startDiscarding: (id) => run(startScript, id),
    stopDiscarding: (id) => run(stopScript, id),
  }
}

/**
 * Tests whether every punched hole waits for the disk of the host: ext4 without a journal that is itself mounted with
 * `discard`. Deleting a small file in a sandbox then takes milliseconds instead of microseconds.
 */
export function punchesHolesSlowly(dataDir: string): boolean {
  const name = blockDeviceName(statSync(dataDir).dev)
  if (name === undefined) return false
  const options = textIn(`/proc/fs/ext4/${name}/options`).split('\n')
  return options.includes('discard') && textIn(`/sys/fs/ext4/${name}/journal_task`) === '<none>\n'
}

/** Returns an empty text for a file system that is not ext4. */
function textIn(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch {
    return ''
  }
}

/** Remounts only a disk that is still mounted writable. Repeats all flags: a remount drops flags that are not given. */
const prelude = `
grep -q " $1 rw," /proc/self/mountinfo || exit 0
device=$(findmnt --noheadings --first-only --output SOURCE --mountpoint "$1")
mark() { echo "$1" > "/sys/fs/ext4/$(basename "$device")/${trimmedMark.file}"; }
switch() { mount -n -o "remount,$1,nodev,noatime" "$2"; }
`
const startScript = `${prelude}
switch discard "$1"
fstrim "$1"
mark ${trimmedMark.value}
`
const stopScript = `${prelude}
mark ${trimmedMark.unmarked}
switch nodiscard "$1"
`
