/** URLs of a PostgreSQL cluster name several hosts, as in libpq: postgres://user:password@host1:5432,host2:5432/database. */

/** Returns a URL for each host, or undefined if the text is not such a URL. */
export function splitHosts(url: string): readonly string[] | undefined {
  const [, scheme, authority, rest] = /^(postgres(?:ql)?:\/\/)([^/?#]*)(.*)$/s.exec(url) ?? []
  if (scheme === undefined || authority === undefined) return undefined
  const hostsAt = authority.lastIndexOf('@') + 1
  const hosts = authority.slice(hostsAt).split(',')
  if (hosts.length > 1 && hosts.includes('')) return undefined
  const urls = hosts.map((host) => `${scheme}${authority.slice(0, hostsAt)}${host}${rest}`)
  return urls.every((one) => URL.canParse(one)) ? urls : undefined
}

/** Returns the hosts and the database, without the credentials. */
export function describeTarget(url: string): string {
  const urls = (splitHosts(url) ?? []).map((one) => new URL(one))
  return `${urls.map(({ host }) => host).join(',')}${urls[0]?.pathname ?? ''}`
}

/** Whether the URL asks for the server that takes writes, or for no particular one. Atoll cannot use a standby. */
export function asksForPrimary(url: string): boolean {
  const [first] = splitHosts(url) ?? []
  if (first === undefined) return true
  const wanted = new URL(first).searchParams.get('target_session_attrs')
  return wanted === null || wanted === 'read-write' || wanted === 'primary'
}
