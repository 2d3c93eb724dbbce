export type ChangeKind = 'create' | 'rename' | 'chmod' | 'write' | 'remove'

export interface Change {
  /** Path relative to the watched folder; `.` is the folder itself. */
  readonly name: string
  readonly kind: ChangeKind
}

export interface WatchOptions {
  readonly path: string
  readonly recursive: boolean
  /** Network mounts hide changes made by other machines, so the caller must opt in. */
  readonly allowNetworkMounts: boolean
}

export interface ChangeListener {
  changed(change: Change): void
  /** Called once and last: changes were lost, or the folder can no longer be watched. */
  failed(cause: Error): void
}

export interface FolderWatcher {
  /** Resolves once the watch is active. Faults: `not_found`, `invalid` if the path cannot be watched. */
  watch(options: WatchOptions, listener: ChangeListener): Promise<{ close(): void }>
}

/** Checks the magic number of a file system that can change without the kernel seeing it. */
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
