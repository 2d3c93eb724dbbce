import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Variables } from '../domain/environment.ts'

/** One file for each variable, named like it with a dot before. Best effort: a full disk must not close the sandbox. */
export function variableFiles(folder: string): (variables: Variables) => Promise<void> {
  return async (variables) => {
    await mkdir(folder, { recursive: true }).catch(ignore)
    for (const [name, value] of Object.entries(variables)) {
      await writeFile(join(folder, `.${name}`), value).catch(ignore)
    }
  }
}

function ignore(): void {}
