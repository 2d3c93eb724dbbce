import { readdir, readFile } from 'node:fs/promises'
import type { z } from 'zod'

/*
 * What has no record is removed, with all that it kept for somebody. So only what is certainly absent or torn is taken
 * for that; whatever else keeps us from reading at this moment is a failure.
 */

export async function readStored<T>(path: string, schema: z.ZodType<T>): Promise<T | undefined> {
  const text = await readFile(path, 'utf8').catch(unlessAbsent)
  return text === undefined ? undefined : schema.safeParse(parse(text)).data
}

/** None when the folder does not exist. */
export async function listNames(dir: string): Promise<string[]> {
  return (await readdir(dir).catch(unlessAbsent)) ?? []
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

function unlessAbsent(error: NodeJS.ErrnoException): undefined {
  if (error.code !== 'ENOENT' && error.code !== 'ENOTDIR') throw error
}
