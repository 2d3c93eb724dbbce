/**
 * Store for objects that must outlive a node. Keys are below the prefix of the settings. Failures of the store are
 * `unavailable` faults with the reason `objects_unavailable`; callers try again later.
 */
export interface ObjectStore {
  /** Creates an object. Returns false, and changes nothing, if the key exists. */
  create(key: string, body: Uint8Array, signal?: AbortSignal): Promise<boolean>
  /** Uploads a large object in pieces. The object appears when it is complete; a failed upload leaves nothing. */
  upload(key: string, body: AsyncIterable<Uint8Array>, signal?: AbortSignal): Promise<void>
  /** Returns the content of a small object; undefined if there is none. Throws if it has more than `maxBytes`. */
  read(key: string, maxBytes: number, signal?: AbortSignal): Promise<Buffer | undefined>
  /** Streams the content of an object; undefined if there is none. */
  open(key: string, signal?: AbortSignal): Promise<AsyncIterable<Uint8Array> | undefined>
  /** Returns the size of an object; undefined if there is none. */
  size(key: string, signal?: AbortSignal): Promise<number | undefined>
  list(prefix: string, signal?: AbortSignal): Promise<string[]>
  /** Returns up to 1,000 keys with a prefix that come after `after` in the order of their bytes. Empty: the end. */
  listAfter(prefix: string, after: string, signal?: AbortSignal): Promise<string[]>
  /** Returns the time of the store's own clock. */
  nowMs(signal?: AbortSignal): Promise<number>
  /** Returns how long ago an object was written, by the clock of the store; undefined if there is none. */
  ageMs(key: string, signal?: AbortSignal): Promise<number | undefined>
  /** Succeeds for keys that do not exist. */
  delete(keys: readonly string[], signal?: AbortSignal): Promise<void>
  /** Removes what interrupted uploads of keys with this prefix have left. */
  abandonUploads(prefix: string, signal?: AbortSignal): Promise<void>
}
