import type { ServerConfig } from '../../config.ts'

/** How the server gets certificates from a certificate authority by ACME (RFC 8555). */
export interface AcmeSettings {
  readonly directoryUrl: string
  readonly email?: string | undefined
  /** Program that publishes DNS records. Absent: the CA asks this server over plain HTTP. */
  readonly hook?: string | undefined
  /** Root certificates that the connection to the CA may have, besides the well-known ones. */
  readonly caFile?: string | undefined
  /** Names in the certificate. */
  readonly hostNames: readonly string[]
}

/** Returns undefined if ACME is off. `hostName` is the domain without a port. */
export function planAcme(
  settings: ServerConfig['server'],
  hostName: string,
): AcmeSettings | undefined {
  const { ATOLL_ACME_DIRECTORY: directoryUrl, ATOLL_ACME_HOOK: hook } = settings
  if (directoryUrl === undefined) return undefined
  const dashboard = settings.ATOLL_DASHBOARD_HOST ?? `ui.${hostName}`
  const hasDashboard = dashboard.endsWith(`.${hostName}`)
  return {
    directoryUrl,
    email: settings.ATOLL_ACME_EMAIL,
    hook,
    caFile: settings.ATOLL_ACME_CA_FILE,
    // CAs issue wildcards only for the DNS challenge, and refuse names that a wildcard in the same order covers.
    hostNames:
      hook === undefined
        ? [`api.${hostName}`, `sandbox.${hostName}`, ...(hasDashboard ? [dashboard] : [])]
        : [`*.${hostName}`],
  }
}
