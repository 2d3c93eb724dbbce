/** Changes in folders, as they happen. */

export type ChangeKind = 'create' | 'rename' | 'chmod' | 'write' | 'remove'

export interface Change {
  /** Relative to the watched folder; `.` is the folder itself. */
  readonly name: string
  readonly kind: ChangeKind
}

export interface WatchOptions {
  readonly path: string
  readonly recursive: boolean
  /** Changes that other machines make on a network mount are not seen, so the caller has to want it. */
  readonly allowNetworkMounts: boolean
}

export interface ChangeListener {
  changed(change: Change): void
  /** The last thing it hears: changes were lost, or cannot be watched any more. */
  failed(cause: Error): void
}

export interface FolderWatcher {
  /** Resolves when every later change will be told. Faults: `not_found`, `invalid` for what cannot be watched. */
  watch(options: WatchOptions, listener: ChangeListener): Promise<{ close(): void }>
}

/** File systems that other machines, or programs, can change behind the kernel's back, by their magic numbers. */
export function isNetworkMount(magic: number): boolean {
  return networkMounts.has(magic)
}

const networkMounts: ReadonlySet<number> = new Set([
  0x6969, // NFS
  0xff534d42, // CIFS
  0x517b, // SMB
  0xfe534d42, // SMB 2
  0x65735546, // FUSE
])
