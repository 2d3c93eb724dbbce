/**
 * libc functions that Node.js lacks, called through koffi. Its JavaScript part looks for the native addon in
 * node_modules, which the bundle does not have; the native addon alone is enough here.
 */
import { createRequire } from 'node:module'
import { arch } from 'node:os'
import type koffi from 'koffi'
import { Fault } from '@atoll/kit/fault'

/** Functions return a negative result on failure; `errno` then has the error. Strings are NUL-terminated bytes. */
export interface Libc {
  errno(): number
  inotifyInit(flags: number): number
  inotifyAddWatch(fd: number, path: Uint8Array, mask: number): number
  inotifyRemoveWatch(fd: number, watch: number): number
  /** The attribute functions do not follow symlinks. */
  listAttributes(path: Uint8Array, list: Uint8Array, size: number): number
  getAttribute(path: Uint8Array, name: Uint8Array, value: Uint8Array, size: number): number
  setAttribute(
    path: Uint8Array,
    name: Uint8Array,
    value: Uint8Array,
    size: number,
    flags: number,
  ): number
  removeAttribute(path: Uint8Array, name: Uint8Array): number
  setHostName(name: Uint8Array, length: number): number
  /** `time` is a timespec: seconds and nanoseconds, eight bytes each. */
  setClock(clock: number, time: Uint8Array): number
  /** Returns freed memory to the kernel, except for `keep` bytes. */
  trimMemory(keep: number): number
}

/** Loads on first use: most sandboxes never need libc, and loading takes 10 ms. */
export function lazyLibc(addon?: string): () => Libc {
  let loaded: Libc | undefined
  return () => (loaded ??= load(addon))
}

function load(addon: string | undefined): Libc {
  const ffi = loadAddon(addon)
  const libc = ffi.load('libc.so.6')
  return {
    errno: ffi.errno,
    inotifyInit: libc.func('int inotify_init1(int)'),
    inotifyAddWatch: libc.func('int inotify_add_watch(int, const void *, uint32_t)'),
    inotifyRemoveWatch: libc.func('int inotify_rm_watch(int, int)'),
    listAttributes: libc.func('long llistxattr(const void *, _Out_ void *, size_t)'),
    getAttribute: libc.func('long lgetxattr(const void *, const void *, _Out_ void *, size_t)'),
    setAttribute: libc.func('int lsetxattr(const void *, const void *, const void *, size_t, int)'),
    removeAttribute: libc.func('int lremovexattr(const void *, const void *)'),
    setHostName: libc.func('int sethostname(const void *, size_t)'),
    setClock: libc.func('int clock_settime(int, const void *)'),
    trimMemory: libc.func('int malloc_trim(size_t)'),
  }
}

function loadAddon(addon: string | undefined): typeof koffi {
  try {
    if (addon !== undefined) return createRequire('/')(addon)
    // The native addon is a dependency of koffi and may be installed below it.
    const library = createRequire(createRequire(import.meta.url).resolve('koffi'))
    return library(`@koromix/koffi-linux-${arch()}/linux_${arch()}/koffi.node`)
  } catch (cause) {
    throw new Fault('internal', 'no_libc', 'Failed to load the native addon that calls libc', {
      cause,
    })
  }
}

export function cString(text: string | Uint8Array): Uint8Array {
  return Buffer.concat([Buffer.from(text), Buffer.alloc(1)])
}

/** errno values, identical on all supported architectures. */
export const errno = {
  notPermitted: 1,
  notFound: 2,
  tooBig: 7,
  accessDenied: 13,
  notFolder: 20,
  noSpace: 28,
  outOfRange: 34,
  nameTooLong: 36,
  tooManyLinks: 40,
  noData: 61,
  notSupported: 95,
} as const
