/** What a search for a name in the first bytes of a connection has come to. */
export type NameSearch =
  /** The bytes so far are the beginning of something that may name. */
  | { readonly kind: 'more' }
  | { readonly kind: 'name'; readonly name: string }
  /** No bytes that follow can change this. */
  | { readonly kind: 'none' }

export const more: NameSearch & { kind: 'more' } = { kind: 'more' }
export const none: NameSearch & { kind: 'none' } = { kind: 'none' }

/** As much as is kept of a connection before it is for someone. Browsers send 2 KiB, curl less. */
export const searchLimitBytes = 16 * 1024
