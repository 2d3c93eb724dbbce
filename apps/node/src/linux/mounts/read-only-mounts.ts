import { mkdir, readdir, rmdir } from 'node:fs/promises'
import { basename, join } from 'node:path'
import type { MountNamespace } from './mount-namespace.ts'
import { unmountReplaced } from './replaced-source.ts'

/**
 * Mounts a folder that several sandboxes share read-only in the host's kernel. Threats: root in a gVisor sandbox can
 * remount writable what the bundle declares read-only; it cannot reach this mount.
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

/** Mounts folders below `source` by name. Mounts each folder once: concurrent mounts would stack. */
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

/** Runs at every start: a previous server may have died between the two steps. */
const mountScript = `
${unmountReplaced}
grep -q " $2 " /proc/self/mountinfo || mount -n --bind "$1" "$2"
mount -n -o remount,bind,ro,nosuid,nodev "$2"
`

/** Unmounts all mounts below `dir` except the names in `keep` and mounts that are busy. */
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
