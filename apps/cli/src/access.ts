import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Fault } from '@atoll/kit/fault'
import { z } from 'zod'
import type { CliConfig } from './config.ts'

/** Finds the server URLs and the API key: first in the environment, then in the credentials file of the local server. */

export interface Access {
  readonly apiUrl: string
  readonly sandboxUrl: string
  readonly apiKey: string
}

const Credentials = z.object({
  url: z.string(),
  sandboxUrl: z.string().optional(),
  apiKey: z.string(),
})
export type Credentials = z.infer<typeof Credentials>

export async function findAccess(config: CliConfig): Promise<Access> {
  const { apiUrl, sandboxUrl } = await findUrls(config)
  if (config.apiKey) return { apiUrl, sandboxUrl, apiKey: config.apiKey }
  const credentials = await requireCredentials(config.dataDir)
  if (!isSameServer(credentials.url, apiUrl)) {
    const path = credentialsPath(config.dataDir)
    throw noKey(`No API key for ${apiUrl}: ${path} holds the key of ${credentials.url}`)
  }
  return { apiUrl, sandboxUrl, apiKey: credentials.apiKey }
}

/** Finds the server URLs. Needs no API key. */
export async function findUrls(
  config: CliConfig,
): Promise<{ readonly apiUrl: string; readonly sandboxUrl: string }> {
  const complete = config.apiUrl && config.sandboxUrl
  const credentials = complete ? undefined : await readUrls(config.dataDir)
  const apiUrl = config.apiUrl ?? credentials?.url ?? defaultUrl
  const ofSameServer = credentials && isSameServer(credentials.url, apiUrl)
  const local = ofSameServer ? credentials.sandboxUrl : undefined
  return { apiUrl, sandboxUrl: config.sandboxUrl ?? local ?? apiUrl }
}

/** True if the configured server runs on this machine and the caller may read its credentials file. */
export async function isLocalServer(config: CliConfig): Promise<boolean> {
  const { apiUrl } = await findUrls(config)
  const credentials = await readUrls(config.dataDir)
  return credentials !== undefined && isSameServer(credentials.url, apiUrl)
}

export async function requireCredentials(dataDir: string): Promise<Credentials> {
  const credentials = await readCredentials(dataDir)
  if (credentials) return credentials
  throw noKey(`No API key: ${credentialsPath(dataDir)} does not exist`)
}

/** Returns undefined if the file does not exist. */
async function readCredentials(dataDir: string): Promise<Credentials | undefined> {
  const path = credentialsPath(dataDir)
  const text = await readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT' || error.code === 'ENOTDIR') return undefined
    if (error.code === 'EACCES')
      throw noKey(`Cannot read the API key: only root may read ${path}`, error)
    throw error
  })
  if (text === undefined) return undefined
  const parsed = Credentials.safeParse(parseJson(text))
  if (parsed.success) return parsed.data
  throw noKey(`Invalid credentials file ${path}: ${z.prettifyError(parsed.error)}`)
}

const defaultUrl = 'http://localhost:3000'

/** Ignores an unreadable credentials file: a caller with another API key can still use the default URL. */
function readUrls(dataDir: string): Promise<Credentials | undefined> {
  return readCredentials(dataDir).catch((thrown: unknown) => {
    if (thrown instanceof Fault && thrown.reason === 'no_key') return undefined
    throw thrown
  })
}

function credentialsPath(dataDir: string): string {
  return join(dataDir, 'credentials.json')
}

function noKey(message: string, cause?: unknown): Fault {
  return new Fault('unauthenticated', 'no_key', message, { cause })
}

/** Guards the API key: a key is sent only to the server that issued it. All loopback names count as one server. */
function isSameServer(one: string, other: string): boolean {
  return originOf(one) === originOf(other)
}

function originOf(text: string): string {
  const url = new URL(text)
  if (['127.0.0.1', '[::1]', '0.0.0.0'].includes(url.hostname)) url.hostname = 'localhost'
  return url.origin
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
