import { readFile } from 'node:fs/promises'
import type { CertificateSource } from './certificates.ts'

/** Certificate and key in files that something else renews, such as certbot. */
export function certificateFiles(certFile: string, keyFile: string): CertificateSource {
  return {
    description: `the certificate ${certFile} and the key ${keyFile}`,
    load: async () => ({ cert: await readPem(certFile), key: await readPem(keyFile) }),
  }
}

async function readPem(path: string): Promise<string> {
  try {
    return await readFile(path, 'utf8')
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : error
    throw new Error(`cannot read ${path} (${String(code)})`, { cause: error })
  }
}
