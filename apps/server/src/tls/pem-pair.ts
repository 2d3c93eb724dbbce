import type { CertificatePair } from './check-certificate.ts'

/** Returns certificate and key as the text of one file, so that both always belong together. */
export function joinPair({ cert, key }: CertificatePair): string {
  return cert + key
}

export function splitPair(pem: string): CertificatePair | undefined {
  const at = pem.indexOf('-----BEGIN PRIVATE KEY-----')
  return at < 1 ? undefined : { cert: pem.slice(0, at), key: pem.slice(at) }
}
