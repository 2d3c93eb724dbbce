/**
 * Files of ACME in the data directory, for root only: the key of the account at each CA, the newest certificate with its
 * key, and the failed attempts.
 */
import { createHash } from 'node:crypto'
import { mkdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { writeFileAtomic } from '@atoll/kit/atomic-file'
import { createKeys, toPem } from '@atoll/kit/certificates/x509'
import { z } from 'zod'
import type { CertificatePair } from '../check-certificate.ts'
import { joinPair, splitPair } from '../pem-pair.ts'

const Account = z.object({ directoryUrl: z.string(), key: z.string() })
const Attempts = z.object({
  /** Settings of the attempts, as a hash. */
  settings: z.string(),
  failures: z.number().int().min(0),
  notBeforeMs: z.number(),
})
export type Attempts = Readonly<z.infer<typeof Attempts>>

export interface AcmeFiles {
  readonly certificateFile: string
  /** Creates the key at the first use. Throws if its file is damaged, since CAs limit the number of new accounts. */
  accountKey(directoryUrl: string): Promise<string>
  /** Returns undefined if there is none, or if its file is damaged. */
  readCertificate(): Promise<CertificatePair | undefined>
  saveCertificate(pair: CertificatePair): Promise<void>
  /** Returns undefined if nothing has failed. */
  readAttempts(): Promise<Attempts | undefined>
  saveAttempts(attempts: Attempts): Promise<void>
}

export function openAcmeFiles(dataDir: string): AcmeFiles {
  const folder = join(dataDir, 'tls')
  const certificateFile = join(folder, 'acme.pem')
  const attemptsFile = join(folder, 'acme-attempts.json')

  async function save(path: string, content: string): Promise<void> {
    await mkdir(folder, { recursive: true, mode: 0o700 })
    await writeFileAtomic(path, content, 0o600)
  }

  return {
    certificateFile,
    async accountKey(directoryUrl) {
      const name = createHash('sha256').update(directoryUrl).digest('hex').slice(0, 12)
      const path = join(folder, `acme-account-${name}.json`)
      const text = await readIfPresent(path)
      if (text !== undefined) {
        const account = parse(Account, text)
        if (account) return account.key
        throw new Error(`${path} is damaged; restore it, or remove it to create a new account`)
      }
      const key = toPem(createKeys().privateKey)
      await save(path, `${JSON.stringify({ directoryUrl, key }, undefined, 2)}\n`)
      return key
    },
    readCertificate: async () => splitPair((await readIfPresent(certificateFile)) ?? ''),
    saveCertificate: (pair) => save(certificateFile, joinPair(pair)),
    readAttempts: async () => parse(Attempts, (await readIfPresent(attemptsFile)) ?? ''),
    saveAttempts: (attempts) => save(attemptsFile, `${JSON.stringify(attempts)}\n`),
  }
}

async function readIfPresent(path: string): Promise<string | undefined> {
  return readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined
    throw error
  })
}

function parse<Schema extends z.ZodType>(schema: Schema, text: string) {
  try {
    return schema.safeParse(JSON.parse(text)).data
  } catch {
    return undefined
  }
}
