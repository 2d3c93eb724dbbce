/** Result of searching the first bytes of a connection for a server name. */
export type NameSearch =
  /** A name may still follow; more bytes are needed. */
  | { readonly kind: 'more' }
  | { readonly kind: 'name'; readonly name: string }
  /** No name, whatever follows. */
  | { readonly kind: 'none' }

export const needMore: NameSearch & { kind: 'more' } = { kind: 'more' }
export const noName: NameSearch & { kind: 'none' } = { kind: 'none' }

/** Most bytes that are buffered before the connection is routed. Browsers send 2 KiB, curl less. */
export const searchLimitBytes = 16 * 1024
