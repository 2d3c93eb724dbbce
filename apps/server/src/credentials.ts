/** Keeps the first API key and access token in a file that only root can read. The database has only their hashes. */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { z } from 'zod'
import { writeFileAtomic } from '@atoll/kit/atomic-file'

const Credentials = z.object({
  teamId: z.string(),
  apiKey: z.string(),
  accessToken: z.string(),
  url: z.string(),
  sandboxUrl: z.string().optional(),
})

export type Credentials = z.infer<typeof Credentials>

function credentialsPath(dataDir: string): string {
  return join(dataDir, 'credentials.json')
}

export async function saveCredentials(dataDir: string, credentials: Credentials): Promise<void> {
  const text = `${JSON.stringify(credentials, undefined, 2)}\n`
  await writeFileAtomic(credentialsPath(dataDir), text, 0o600)
}

/** Updates the server's URLs in the file. Returns false, and writes nothing, if the file is missing or invalid. */
export async function moveCredentials(
  dataDir: string,
  urls: { readonly url: string; readonly sandboxUrl: string },
): Promise<boolean> {
  const current = await readCredentials(dataDir)
  if (!current) return false
  const { url, sandboxUrl } = urls
  if (current.url !== url || current.sandboxUrl !== sandboxUrl) {
    await saveCredentials(dataDir, { ...current, url, sandboxUrl })
  }
  return true
}

/** Returns undefined if the file is missing or invalid. */
export async function readCredentials(dataDir: string): Promise<Credentials | undefined> {
  try {
    const text = await readFile(credentialsPath(dataDir), 'utf8')
    return Credentials.safeParse(JSON.parse(text)).data
  } catch (error) {
    const isMissing = error instanceof Error && 'code' in error && error.code === 'ENOENT'
    if (isMissing || error instanceof SyntaxError) return undefined
    throw error
  }
}
