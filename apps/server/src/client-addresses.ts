import { localDomain } from './listen-address.ts'
import type { TlsPlan } from './tls/tls-plan.ts'

/** How clients reach this server. */
export interface ClientAddresses {
  readonly apiUrl: string
  readonly sandboxUrl: string
  /** Domain of `{port}-{sandboxID}` host names, with a port if need be. */
  readonly sandboxDomain: string
}

/** Clients use the names of HTTPS if it is on, else the listeners of this machine. */
export function clientAddresses(
  plain: { readonly apiUrl: string; readonly sandboxUrl: string },
  settings: { readonly domain: string | undefined; readonly tls: TlsPlan | undefined },
): ClientAddresses {
  const { tls, domain = localDomain(plain.sandboxUrl) } = settings
  if (!tls) return { ...plain, sandboxDomain: domain }
  return {
    apiUrl: `https://api.${tls.domain}`,
    sandboxUrl: `https://sandbox.${tls.domain}`,
    sandboxDomain: tls.domain,
  }
}
