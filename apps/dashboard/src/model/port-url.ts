/** Returns the address of a port of a sandbox by host name, or undefined for text that is no port. */
export function portUrl(
  addresses: { readonly sandboxUrl: string; readonly sandboxDomain: string },
  sandboxId: string,
  port: string,
): string | undefined {
  const number = Number(port)
  if (!/^\d{1,5}$/.test(port) || number < 1 || number > 65_535) return undefined
  const { protocol } = new URL(addresses.sandboxUrl)
  return `${protocol}//${number}-${sandboxId}.${addresses.sandboxDomain}/`
}
