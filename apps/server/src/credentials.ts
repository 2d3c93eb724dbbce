/** First API key and access token, in a file that only root can read: the store has only their hashes. */
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

/** Updates the server's URLs in the file. Returns false when the file is missing or invalid. */
export async function moveCredentials(
  dataDir: string,
  place: { readonly url: string; readonly sandboxUrl: string },
): Promise<boolean> {
  const kept = await readCredentials(dataDir)
  if (!kept) return false
  const { url, sandboxUrl } = place
  if (kept.url !== url || kept.sandboxUrl !== sandboxUrl) {
    await saveCredentials(dataDir, { ...kept, url, sandboxUrl })
  }
  return true
}

/** Reads the file; undefined when it is missing or invalid. A file edited by hand is neither used nor overwritten. */
export async function readCredentials(dataDir: string): Promise<Credentials | undefined> {
  try {
    const text = await readFile(credentialsPath(dataDir), 'utf8')
    return Credentials.safeParse(JSON.parse(text)).data
  } catch (error) {
    const isGone = error instanceof Error && 'code' in error && error.code === 'ENOENT'
    if (isGone || error instanceof SyntaxError) return undefined
    throw error
  }
}
