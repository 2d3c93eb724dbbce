import { join } from 'node:path'
import type { MountNamespace } from '../mounts/mount-namespace.ts'

/** Switches whether deletions on a mounted disk punch holes into its image. */
export interface Discards {
  /** Starts to discard and trims the blocks that were deleted before. */
  startDiscarding(id: string): Promise<void>
  stopDiscarding(id: string): Promise<void>
}

/** Allows time to write dirty pages first, which may be gigabytes. */
const limitMs = 240_000

export function createDiscards(namespace: MountNamespace, disksDir: string): Discards {
  const run = async (script: string, id: string) => {
    await namespace.run('sh', ['-euc', script, 'discard', join(disksDir, id)], {
      timeoutMs: limitMs,
    })
  }
  return {
    startDiscarding: (id) => run(`${remount('discard')} && fstrim --minimum 65536 "$1"`, id),
    stopDiscarding: (id) => run(remount('nodiscard'), id),
  }
}

/** Remounts only a disk that is still mounted writable. Repeats all flags: a remount drops flags that are not given. */
function remount(option: string): string {
  return `grep -q " $1 rw," /proc/self/mountinfo || exit 0
mount -n -o remount,${option},nodev,noatime "$1"`
}
