import { mkdir, readdir, rmdir } from 'node:fs/promises'
import { basename, join } from 'node:path'
import type { MountNamespace } from './mount-namespace.ts'

/**
 * A folder that several sandboxes share, as a mount that the host's kernel holds read-only. Threats: root of a gVisor
 * sandbox may mount anew, writable, what its bundle calls read-only; this mount is out of its reach.
 */
export async function mountReadOnly(
  namespace: MountNamespace,
  source: string,
  dir: string,
): Promise<string> {
  const target = join(dir, basename(source))
  await mkdir(target, { recursive: true, mode: 0o700 })
  await namespace.run('sh', ['-euc', mountScript, 'mount', source, target])
  return target
}

/** Gives the mount of a folder below `source` by its name. Each is made once: two at a time would lie over each other. */
export function createReadOnlyMounts(
  namespace: MountNamespace,
  source: string,
  dir: string,
): (name: string) => Promise<string> {
  const mounts = new Map<string, Promise<string>>()
  return (name) => {
    const mounted = mounts.get(name) ?? mountReadOnly(namespace, join(source, name), dir)
    mounts.set(name, mounted)
    mounted.catch(() => mounts.delete(name))
    return mounted
  }
}

/** Repeated at each start: a predecessor may have died between the two steps. */
const mountScript = `
grep -q " $2 " /proc/self/mountinfo || mount -n --bind "$1" "$2"
mount -n -o remount,bind,ro,nosuid,nodev "$2"
`

/** Unmounts what was mounted below `dir`, except the names in `keep` and what is in use, for whatever reason. */
export async function unmountReadOnly(
  namespace: MountNamespace,
  dir: string,
  keep: ReadonlySet<string>,
): Promise<void> {
  for (const name of await readdir(dir)) {
    if (keep.has(name)) continue
    await namespace.tryRun('umount', ['-n', join(dir, name)])
    await rmdir(join(dir, name)).catch(() => {})
  }
}
