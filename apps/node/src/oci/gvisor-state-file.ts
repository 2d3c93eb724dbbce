import { readFile, rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'

/**
 * Corrects the status in runsc's state file. A runsc command freezes or thaws the kernel first and then writes the
 * file, so a killed command leaves a wrong status, and calls to the control socket leave the file as it was. runsc
 * refuses to freeze what the file calls paused, and to thaw what it calls running.
 */
export async function correctStateFile(
  root: string,
  id: string,
  status: 'running' | 'paused',
): Promise<void> {
  const path = join(root, `${id}_sandbox:${id}.state`)
  const note = await readFile(path, 'utf8')
  const corrected = note.replace(/"status":"(created|running|paused)"/, `"status":"${status}"`)
  if (corrected === note) return
  await writeFile(`${path}.next`, corrected, { mode: 0o600 })
  await rename(`${path}.next`, path)
}
