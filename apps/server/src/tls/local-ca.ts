/**
 * A certificate authority of this installation, for domains that no public authority knows, such as names below
 * localhost. Clients trust it after its certificate is installed on their machines.
 *
 * Threats: with the key of a CA that browsers trust, an attacker can impersonate any site to them. So this CA is
 * restricted to the domain of this server, and only root can read its key.
 */
import { createPrivateKey, createPublicKey, X509Certificate } from 'node:crypto'
import { mkdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { writeFileAtomic } from '@atoll/kit/atomic-file'
import {
  authorityExtensions,
  createKeys,
  dayBefore,
  dayMs,
  encodeCertificate,
  onlyForDomain,
  serverExtensions,
  toPem,
} from '@atoll/kit/certificates/x509'
import { Fault } from '@atoll/kit/fault'
import { z } from 'zod'
import type { CertificatePair } from './check-certificate.ts'

const LocalCa = z.object({ domain: z.string(), certificate: z.string(), key: z.string() })
export type LocalCa = Readonly<z.infer<typeof LocalCa>>

export interface LocalCaFiles {
  /** CA with its key: one file, so that both always belong together. */
  readonly authority: string
  /** Certificate of the CA, for clients. */
  readonly certificate: string
  /** Certificate of the server with its key. */
  readonly server: string
}

export function localCaFiles(dataDir: string): LocalCaFiles {
  const folder = join(dataDir, 'tls')
  return {
    authority: join(folder, 'local-ca.json'),
    certificate: join(folder, 'ca.crt'),
    server: join(folder, 'server.pem'),
  }
}

export function createLocalCa(domain: string, now: Date): LocalCa {
  const { publicKey, privateKey } = createKeys()
  const until = new Date(now)
  until.setUTCFullYear(now.getUTCFullYear() + 10)
  const name = authorityName(domain)
  const certificate = encodeCertificate({
    ...{ subject: name, issuer: name, publicKey },
    issuerKey: privateKey,
    from: dayBefore(now),
    until,
    extensions: [...authorityExtensions(publicKey), onlyForDomain(domain)],
  })
  return { domain, certificate, key: toPem(privateKey) }
}

const serverDays = 90

/** Issues a certificate for the domain and all names directly below it. */
export function issueServerCertificate(ca: LocalCa, now: Date): CertificatePair {
  const { publicKey, privateKey } = createKeys()
  const issuerKey = createPrivateKey(ca.key)
  const { validToDate } = new X509Certificate(ca.certificate)
  const until = Math.min(now.getTime() + serverDays * dayMs, validToDate.getTime())
  const cert = encodeCertificate({
    subject: 'Atoll',
    issuer: authorityName(ca.domain),
    publicKey,
    issuerKey,
    from: dayBefore(now),
    until: new Date(until),
    extensions: serverExtensions([ca.domain, `*.${ca.domain}`], createPublicKey(issuerKey)),
  })
  return { cert, key: toPem(privateKey) }
}

/** A common name has at most 64 characters (RFC 5280, appendix A.1). */
function authorityName(domain: string): string {
  return `Atoll local CA for ${domain}`.slice(0, 64)
}

export async function saveLocalCa(dataDir: string, ca: LocalCa): Promise<void> {
  const files = localCaFiles(dataDir)
  await mkdir(join(dataDir, 'tls'), { recursive: true, mode: 0o700 })
  await writeFileAtomic(files.authority, `${JSON.stringify(ca, undefined, 2)}\n`, 0o600)
  await writeFileAtomic(files.certificate, ca.certificate, 0o644)
}

/** Returns undefined if there is none. Throws a fault if its file is damaged. */
export async function readLocalCa(dataDir: string): Promise<LocalCa | undefined> {
  const path = localCaFiles(dataDir).authority
  const text = await readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT' || error.code === 'ENOTDIR') return undefined
    throw error
  })
  if (text === undefined) return undefined
  const ca = parse(text)
  if (ca) return ca
  throw new Fault(
    'invalid',
    'damaged_local_ca',
    `${path} is damaged: create a new local CA with atoll tls local --replace, and trust it instead of the old one`,
  )
}

function parse(text: string): LocalCa | undefined {
  try {
    return LocalCa.safeParse(JSON.parse(text)).data
  } catch {
    return undefined
  }
}
