import { createPrivateKey, X509Certificate } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { Fault } from '@atoll/kit/fault'
import { z } from 'zod'
import { createAuthority } from './authority.ts'
import type { Authority } from './authority.ts'

/** Where the apis keep the authority. `ensure` returns the stored text, or stores and returns a new one. */
export interface AuthorityStore {
  ensure(name: string, create: () => string): Promise<string>
}

const setting = 'fleet_authority'
const Stored = z.object({ certificate: z.string(), key: z.string() })

/** Reads the operator's file, or the authority in the store, which the first api creates. */
export async function openAuthority(
  store: AuthorityStore,
  path: string | undefined,
  now: Date,
): Promise<Authority> {
  if (path !== undefined) return parseFile(path, await readFile(path, 'utf8'))
  const text = await store.ensure(setting, () => JSON.stringify(createAuthority(now)))
  return Stored.parse(JSON.parse(text))
}

function parseFile(path: string, text: string): Authority {
  try {
    const certificate = new X509Certificate(text)
    const key = createPrivateKey(text)
    if (certificate.ca && certificate.checkPrivateKey(key) && isP256(certificate)) {
      const exported = key.export({ type: 'pkcs8', format: 'pem' }).toString()
      return { certificate: certificate.toString(), key: exported }
    }
  } catch {
    // Reported below.
  }
  throw new Fault(
    'invalid',
    'fleet_authority',
    `ATOLL_FLEET_CA_FILE ${path} must have the certificate of a CA and its key, P-256, as PEM`,
  )
}

function isP256({ publicKey }: X509Certificate): boolean {
  return publicKey.asymmetricKeyDetails?.namedCurve === 'prime256v1'
}
