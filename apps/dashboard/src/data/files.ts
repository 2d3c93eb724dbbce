import { envd, RequestError } from './request.ts'

/** Throws if something has this path already: moving or writing would replace it. */
export async function requireFreePath(sandboxId: string, path: string): Promise<void> {
  try {
    await envd(sandboxId, 'Stat', { path })
  } catch (error) {
    if (error instanceof RequestError && error.status === 404) return
    throw error
  }
  throw new Error(`${path} exists already`)
}
