/**
 * Converts the whiteout files of an unpacked image layer to overlayfs whiteouts. Runs as a separate program inside the
 * mount namespace: `node whiteouts.ts FOLDER`.
 *
 * Threats: the tree is untrusted. No link is followed: the program enters only entries that lstat reports as
 * directories, and nothing else changes the tree meanwhile. Names are handled as bytes, not text.
 */
import { lstatSync, readdirSync, rmSync } from 'node:fs'
import koffi from 'koffi'

const libc = koffi.load('libc.so.6')
const mknod = libc.func('int mknod(const uint8_t *path, uint32_t mode, uint64_t device)')
const lsetxattr = libc.func(
  'int lsetxattr(const uint8_t *path, const char *name, const char *value, size_t size, int flags)',
)

const characterDevice = 0o020000
const prefix = Buffer.from('.wh.')
const opaque = Buffer.from('.wh..wh..opq')
const slash = Buffer.from('/')

const [root = ''] = process.argv.slice(2)
convert(Buffer.from(root))

function convert(folder: Buffer): void {
  for (const name of readdirSync(folder, { encoding: 'buffer' })) {
    const path = Buffer.concat([folder, slash, name])
    if (name.subarray(0, prefix.length).equals(prefix)) replace(folder, name, path)
    else if (lstatSync(path).isDirectory()) convert(path)
  }
}

function replace(folder: Buffer, name: Buffer, path: Buffer): void {
  rmSync(path, { recursive: true })
  if (name.equals(opaque)) {
    check('lsetxattr', lsetxattr(ended(folder), 'trusted.overlay.opaque', 'y', 1, 0))
    return
  }
  const gone = name.subarray(prefix.length)
  // Other names with the prefix have no meaning in overlayfs.
  if (gone.length === 0 || gone.subarray(0, prefix.length).equals(prefix)) return
  const place = Buffer.concat([folder, slash, gone])
  if (lstatSync(place, { throwIfNoEntry: false })) return
  check('mknod', mknod(ended(place), characterDevice, 0))
}

function ended(path: Buffer): Buffer {
  return Buffer.concat([path, Buffer.alloc(1)])
}

function check(call: string, result: number): void {
  if (result !== 0) throw new Error(`${call} failed with errno ${koffi.errno()}`)
}
