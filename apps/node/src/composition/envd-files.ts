import { basename } from 'node:path'
import type { Installation } from '../domain/host/installation.ts'
import { join } from 'node:path'
import type { MountNamespace } from '../linux/mounts/mount-namespace.ts'
import { mountReadOnly, unmountReadOnly } from '../linux/mounts/read-only-mounts.ts'
import { ensureEnvdRuntime, removeEnvdRuntimes } from '../template/envd-runtime.ts'

/** Builds of envd and guest on this host. Each cell keeps using the build that it was made with. */
export interface EnvdFiles {
  readonly version: string
  /** Guest program of the current build. */
  readonly guest: string
  /** Read-only mount of the current build, for new cells. */
  readonly currentDir: string
  readonly builtDir: string
  readonly mountedDir: string
}

/** Builds envd when its sources changed. */
export async function openEnvdFiles({ dataDir, runDir }: Installation, namespace: MountNamespace) {
  const builtDir = join(dataDir, 'envd')
  const mountedDir = join(runDir, 'envd')
  const { dir, version } = await ensureEnvdRuntime({ dir: builtDir })
  const currentDir = await mountReadOnly(namespace, dir, mountedDir)
  // Run the guest from the build folder: a mount with a running program in it cannot be removed.
  return { version, guest: join(dir, 'guest'), currentDir, builtDir, mountedDir }
}

/** Removes all builds but the current one and those in `used`. */
export async function removeUnusedEnvds(
  namespace: MountNamespace,
  { currentDir, builtDir, mountedDir }: EnvdFiles,
  used: readonly string[],
): Promise<void> {
  const inUse = new Set([basename(currentDir), ...used])
  await unmountReadOnly(namespace, mountedDir, inUse)
  await removeEnvdRuntimes(builtDir, inUse)
}
