/**
 * Formats a file mode as Go does, which clients expect: a letter for each special bit, or `-` for none, then nine
 * letters for the permissions. A folder with the sticky bit is `dtrwxrwxrwx`, not `drwxrwxrwt`.
 */
export function permissionText(mode: number): string {
  const kind = kinds.get(mode & kindMask) ?? ''
  const special = specials.map(([bit, letter]) => (mode & bit ? letter : '')).join('')
  // Go puts the letter for character devices between those for setgid and sticky.
  const letters =
    kind === 'Dc' ? `D${special.replace('t', '')}c${mode & 0o1000 ? 't' : ''}` : kind + special
  const bits = Array.from('rwxrwxrwx', (letter, at) => (mode & (0o400 >> at) ? letter : '-'))
  return (letters || '-') + bits.join('')
}

const kindMask = 0o170_000

const kinds: ReadonlyMap<number, string> = new Map([
  [0o040_000, 'd'],
  [0o120_000, 'L'],
  [0o060_000, 'D'],
  [0o020_000, 'Dc'],
  [0o010_000, 'p'],
  [0o140_000, 'S'],
])

const specials: readonly (readonly [number, string])[] = [
  [0o4000, 'u'],
  [0o2000, 'g'],
  [0o1000, 't'],
]
