/** What programs in the sandbox need to know of an authority that was given to be trusted. */
import type { Variables } from '../process/environment.ts'

/** The files that could be written. */
export interface InstalledCa {
  /** The authority alone. */
  readonly certificate?: string | undefined
  /** All authorities, this one among those of the system. */
  readonly bundle?: string | undefined
}

export interface InstalledCaStore {
  load(): InstalledCa
  /** Never fails: what could not be kept is gone after a restart. */
  save(trusted: InstalledCa): Promise<void>
}

/**
 * For those who do not look where the system's authorities are. Node.js takes NODE_EXTRA_CA_CERTS beside a list of its
 * own. httpx, and Python, Go or Rust programs that were built elsewhere, take SSL_CERT_FILE in place of theirs, and so
 * do requests, pip and botocore with REQUESTS_CA_BUNDLE. curl, wget and git of the system need nothing, and another curl
 * takes SSL_CERT_FILE; CURL_CA_BUNDLE would only hide one that a user sets.
 */
export function caVariables({ certificate, bundle }: InstalledCa): Variables {
  return {
    ...(certificate !== undefined && { NODE_EXTRA_CA_CERTS: certificate }),
    ...(bundle !== undefined && { SSL_CERT_FILE: bundle, REQUESTS_CA_BUNDLE: bundle }),
  }
}
