import { mkdir, readdir, rename } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { tryRun } from '@atoll/kit/run'
import { ensureEnvdRuntime } from '../template/envd-runtime.ts'

/** Builds of envd for the tests of this clone. */
const sharedDir = join(import.meta.dirname, '../../../../node_modules/.cache/envd')

/**
 * Links the current build of envd into the data directory of a new installation, which otherwise spends 5 s of processor time on
 * the same build. Nothing writes to these files: sandboxes have them read-only.
 */
export async function shareEnvd(dataDir: string): Promise<void> {
  const folder = join(dataDir, 'envd')
  await mkdir(folder, { recursive: true })
  if ((await readdir(folder)).length > 0) return
  const { dir } = await ensureEnvdRuntime({ dir: sharedDir })
  const fresh = join(folder, `.tmp-${basename(dir)}`)
  // Links do not cross file systems. The installation then builds envd, and removes what is left here.
  const { code } = await tryRun('cp', ['--archive', '--link', dir, fresh])
  if (code === 0) await rename(fresh, join(folder, basename(dir)))
}
