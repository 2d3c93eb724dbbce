import { mkdir } from 'node:fs/promises'
import { limitConcurrency } from '@atoll/kit/limit-concurrency'
import type { MountNamespace } from '../mounts/mount-namespace.ts'

/** Small file system of a few megabytes, for writes that must fail early with ENOSPC. */
export interface Scratch {
  /** Runs one `work` at a time, each with an empty folder. */
  use(work: (dir: string) => Promise<void>): Promise<void>
}

export function createScratch(parts: {
  readonly namespace: MountNamespace
  readonly image: string
  readonly dir: string
  readonly sizeMb: number
}): Scratch {
  const { namespace, image, dir, sizeMb } = parts
  const gate = limitConcurrency(1)
  return {
    use: (work) =>
      gate(async () => {
        await mkdir(dir, { recursive: true, mode: 0o700 })
        await namespace.run('sh', ['-euc', emptyScript, 'empty', image, dir, `${sizeMb}M`])
        await work(dir)
      }),
  }
}

const emptyScript = `
image=$1 dir=$2 size=$3
if ! grep -q " $dir " /proc/self/mountinfo; then
  rm -f "$image"
  truncate -s "$size" "$image"
  mkfs.ext4 -q -F -m 0 -O ^has_journal "$image"
  mount -n -o loop,nodev,noexec,nosuid "$image" "$dir"
fi
find "$dir" -mindepth 1 -delete
`
