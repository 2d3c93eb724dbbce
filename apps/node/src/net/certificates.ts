import { X509Certificate } from 'node:crypto'
import { readFile } from 'node:fs/promises'

/** Reads the PEM certificates in a file. Throws an error that names the file and the problem. */
export async function readCertificates(path: string): Promise<string[]> {
  const text = await readFile(path, 'utf8').catch((cause: unknown) => {
    throw new Error(`ATOLL_EGRESS_CA_FILE: ${path} cannot be read`, { cause })
  })
  const found = text.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? []
  if (found.length === 0 || !found.every(isCertificate)) {
    throw new Error(`ATOLL_EGRESS_CA_FILE: ${path} must contain certificates in PEM format`)
  }
  return found
}

function isCertificate(text: string): boolean {
  try {
    return new X509Certificate(text).subject !== ''
  } catch {
    return false
  }
}
