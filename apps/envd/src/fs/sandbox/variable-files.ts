import { closeSync, constants, mkdirSync, openSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import type { Variables } from '../../domain/process/environment.ts'

/**
 * One file for each variable, named like it with a dot before. Best effort: a full disk must not close the sandbox. All at
 * once, not by the thread pool: the folder is in memory, and each round trip costs more than the file.
 */
export function variableFiles(folder: string): (variables: Variables) => Promise<void> {
  return async (variables) => {
    ignoreErrors(() => mkdirSync(folder, { recursive: true }))
    for (const [name, value] of Object.entries(variables)) {
      ignoreErrors(() => write(join(folder, `.${name}`), value))
    }
  }
}

/** Whoever is root in the sandbox may have put something else there: neither a link is followed nor a pipe waited for. */
function write(path: string, text: string): void {
  const { O_WRONLY, O_CREAT, O_TRUNC, O_NOFOLLOW, O_NONBLOCK } = constants
  const fd = openSync(path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_NONBLOCK, 0o644)
  try {
    writeSync(fd, text)
  } finally {
    closeSync(fd)
  }
}

function ignoreErrors(act: () => void): void {
  try {
    act()
  } catch {}
}
