import { closeSync, constants, mkdirSync, openSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import type { Variables } from '../../domain/process/environment.ts'

/**
 * Writes each variable to a file named `.NAME`. Best effort: a full disk must not make /init fail. Synchronous,
 * because the folder is on tmpfs and a thread pool round trip costs more than the write.
 */
export function variableFiles(folder: string): (variables: Variables) => Promise<void> {
  return async (variables) => {
    ignoreErrors(() => mkdirSync(folder, { recursive: true }))
    for (const [name, value] of Object.entries(variables)) {
      ignoreErrors(() => write(join(folder, `.${name}`), value))
    }
  }
}

/** Threats: root in the sandbox may have put a symlink or pipe there, so neither is followed or waited for. */
function write(path: string, text: string): void {
  const { O_WRONLY, O_CREAT, O_TRUNC, O_NOFOLLOW, O_NONBLOCK } = constants
  const fd = openSync(path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_NONBLOCK, 0o644)
  try {
    writeSync(fd, text)
  } finally {
    closeSync(fd)
  }
}

function ignoreErrors(action: () => void): void {
  try {
    action()
  } catch {}
}
