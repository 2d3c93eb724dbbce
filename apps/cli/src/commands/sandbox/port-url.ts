import { isIP } from 'node:net'
import type { Access } from '../../access.ts'
import type { CliConfig } from '../../config.ts'
import { UsageError } from '../../failure.ts'

/** Returns the URL of a port by host name, so that pages of the sandbox have an origin of their own. */
export function portUrl(
  access: Pick<Access, 'sandboxUrl'>,
  config: Pick<CliConfig, 'domain'>,
  { sandboxId, port }: { readonly sandboxId: string; readonly port: number },
): string {
  const { protocol, host, hostname, port: edgePort } = new URL(access.sandboxUrl)
  if (config.domain !== undefined) return `${protocol}//${port}-${sandboxId}.${config.domain}/`
  const address = hostname.replace(/^\[|\]$/g, '')
  const isLoopback = address === '::1' || address.startsWith('127.')
  if (!isLoopback && isIP(address) > 0) {
    const message = `${access.sandboxUrl} is an address without a domain, so ports have no host name.`
    throw new UsageError(
      `${message} Set ATOLL_DOMAIN to a domain whose subdomains resolve to this address.`,
    )
  }
  const localhost = edgePort === '' ? 'localhost' : `localhost:${edgePort}`
  return `${protocol}//${port}-${sandboxId}.${isLoopback ? localhost : host}/`
}
