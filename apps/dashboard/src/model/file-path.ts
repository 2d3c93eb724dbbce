/** An entry of a folder as envd lists it, as JSON of its protocol. */
export interface FileEntry {
  readonly name: string
  readonly path: string
  readonly type?: string
  /** A 64-bit number, which JSON carries as text. */
  readonly size?: string
  readonly permissions?: string
  readonly owner?: string
  readonly modifiedTime?: string
  readonly symlinkTarget?: string
}

export function isFolder({ type }: FileEntry): boolean {
  return type === 'FILE_TYPE_DIRECTORY'
}

/** Folders first, then by name. */
export function sortEntries(entries: readonly FileEntry[]): FileEntry[] {
  return entries.toSorted((a, b) => {
    if (isFolder(a) !== isFolder(b)) return isFolder(a) ? -1 : 1
    return a.name < b.name ? -1 : 1
  })
}

export function joinPath(folder: string, name: string): string {
  return folder.endsWith('/') ? `${folder}${name}` : `${folder}/${name}`
}

export function parentOf(path: string): string {
  return path.slice(0, path.lastIndexOf('/')) || '/'
}

/** Returns each folder on the way with its path, from the root. */
export function crumbsOf(path: string): { readonly name: string; readonly path: string }[] {
  const names = path.split('/').filter(Boolean)
  return [
    { name: '/', path: '/' },
    ...names.map((name, index) => ({ name, path: `/${names.slice(0, index + 1).join('/')}` })),
  ]
}

/** True if the bytes are text that an editor can change without damage. */
export function decodeText(bytes: Uint8Array): string | undefined {
  if (bytes.includes(0)) return undefined
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
  } catch {
    return undefined
  }
}
