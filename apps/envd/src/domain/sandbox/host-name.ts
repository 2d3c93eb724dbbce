/** Host name of the sandbox, in the kernel, hostname(5) and hosts(5). */

/** Whether the text is a single host name that is safe to write to these files. */
export function isHostName(text: string): boolean {
  return /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/i.test(text)
}

/**
 * Replaces old host names in the 127.0.1.1 entry of a hosts(5) file. Other entries may be the user's and are left
 * alone.
 */
export function renameHost(
  hosts: string,
  oldNames: ReadonlySet<string | undefined>,
  name: string,
): string {
  return hosts.replaceAll(ownEntry, (_, address: string, names: string) => {
    const words = names.split(/([ \t]+)/)
    return address + words.map((word) => (word !== '' && oldNames.has(word) ? name : word)).join('')
  })
}

const ownEntry = /^([ \t]*127\.0\.1\.1[ \t]+)([^\r\n#]*)/gm
