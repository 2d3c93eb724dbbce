/** Files through which programs in the sandbox trust the egress CA. */
import type { Variables } from '../process/environment.ts'

/** Paths of the files that could be written. */
export interface InstalledCa {
  /** Certificate of the egress CA alone. */
  readonly certificate?: string | undefined
  /** System CA bundle that includes the egress CA. */
  readonly bundle?: string | undefined
}

export interface InstalledCaStore {
  load(): InstalledCa
  /** Never rejects; a value that could not be saved is lost at a restart. */
  save(trusted: InstalledCa): Promise<void>
}

/**
 * Variables for programs that do not use the system's CA bundle. Node.js adds NODE_EXTRA_CA_CERTS to its own list.
 * httpx, and Python, Go or Rust programs built elsewhere, use SSL_CERT_FILE instead of theirs; requests, pip and
 * botocore use REQUESTS_CA_BUNDLE. The system's curl, wget and git need nothing, and other builds of curl use
 * SSL_CERT_FILE. CURL_CA_BUNDLE is not set, because it would hide a value set by the user.
 */
export function caVariables({ certificate, bundle }: InstalledCa): Variables {
  return {
    ...(certificate !== undefined && { NODE_EXTRA_CA_CERTS: certificate }),
    ...(bundle !== undefined && { SSL_CERT_FILE: bundle, REQUESTS_CA_BUNDLE: bundle }),
  }
}
