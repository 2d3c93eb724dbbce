import { join } from 'node:path'
import type { MountNamespace } from './mount-namespace.ts'

/** Whether the deletions on a mounted disk punch holes into its image. */
export interface Discards {
  /** Also gives back what was deleted before. */
  startDiscarding(id: string): Promise<void>
  stopDiscarding(id: string): Promise<void>
}

/** Dirty pages are written first, which may be gigabytes. */
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

/** Only where a disk is mounted to be written to: it may be gone by now. Flags that are not said again would be lost. */
function remount(option: string): string {
  return `grep -q " $1 rw," /proc/self/mountinfo || exit 0
mount -n -o remount,${option},nodev,noatime "$1"`
}
