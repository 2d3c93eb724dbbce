/** The name of the sandbox as its system knows it: the kernel's host name, hostname(5) and hosts(5). */

/** Whether the text can stand in those files, and names one host alone. */
export function isHostName(text: string): boolean {
  return /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/i.test(text)
}

/**
 * Gives the machine's own entry in a hosts(5) file, that of 127.0.1.1, the new name in the place of any of the old ones.
 * All else may be the user's, and stays.
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
