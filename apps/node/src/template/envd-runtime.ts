/**
 * Read-only folder that each sandbox gets as `/.atoll`: envd in one file, Node.js with its own loader and libraries,
 * and the static guest program. It works in any image.
 */
import { mkdir, mkdtemp, readdir, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { envdVersion } from '@atoll/envd/version'
import { syncFolder } from '@atoll/kit/atomic-file'
import { run } from '@atoll/kit/run'
import { buildEnvdRuntime } from './envd-build.ts'
import { sourceKey } from './envd-key.ts'
import { lockFolder } from './folder-lock.ts'
import { exists } from './layer.ts'

export interface EnvdRuntime {
  readonly dir: string
  /** Reported by sandboxes as `envdVersion`. */
  readonly version: string
}

const buildPrefix = '.tmp-'

/**
 * Returns the runtime for the current sources, in its own folder below `dir`. Running sandboxes keep the runtime that
 * they started with.
 */
export async function ensureEnvdRuntime(options: { readonly dir: string }): Promise<EnvdRuntime> {
  const repository = fileURLToPath(new URL('../../../../', import.meta.url))
  const nodeBinary = process.execPath
  const dir = join(options.dir, await sourceKey(repository, process.version))
  if (!(await exists(dir))) {
    await mkdir(options.dir, { recursive: true })
    await using _lock = await lockFolder(options.dir, { onWait: () => {} })
    if (!(await exists(dir))) await build(options.dir, dir, { repository, nodeBinary })
  }
  return { dir, version: envdVersion }
}

/** Removes all runtimes below `dir` except `keep`. The caller knows which ones sandboxes use. */
export async function removeEnvdRuntimes(dir: string, keep: ReadonlySet<string>): Promise<void> {
  await using _lock = await lockFolder(dir, { onWait: () => {} })
  for (const entry of await readdir(dir, { withFileTypes: true })) {
    if (entry.isDirectory() && !keep.has(entry.name))
      await rm(join(dir, entry.name), { recursive: true })
  }
}

async function build(
  parent: string,
  dir: string,
  parts: { readonly repository: string; readonly nodeBinary: string },
): Promise<void> {
  const abandoned = (await readdir(parent)).filter((name) => name.startsWith(buildPrefix))
  for (const name of abandoned) await rm(join(parent, name), { recursive: true })
  const work = await mkdtemp(join(parent, buildPrefix))
  await buildEnvdRuntime({ ...parts, dir: work })
  // Sync the content before the rename: the final name must never have partial content.
  await run('sync', ['--file-system', work], { timeoutMs: 300_000 })
  await rename(work, dir)
  await syncFolder(parent)
}
