/** Preload for clients: resolves all names below localhost to 127.0.0.1, as browsers and systemd-resolved do. */
import dns from 'node:dns'
import { promisify } from 'node:util'

const { lookup } = dns

/** Node.js calls this function by the name `dns.lookup` for every connection. */
function lookupLocalhost(...args: unknown[]): void {
  const [name] = args
  const isLocal = typeof name === 'string' && name.endsWith('.localhost')
  Reflect.apply(lookup, dns, isLocal ? ['127.0.0.1', ...args.slice(1)] : args)
}

Reflect.set(lookupLocalhost, promisify.custom, Reflect.get(lookup, promisify.custom))
Reflect.set(dns, 'lookup', lookupLocalhost)
