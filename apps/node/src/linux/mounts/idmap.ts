/**
 * Mounts a folder with all owners shifted: a layer is stored once with ordinary IDs and serves sandboxes whose root is
 * an unprivileged user of the host. util-linux 2.38 has no option for this, so the program makes the system calls
 * itself. Runs as a separate program inside the mount namespace: `node idmap.ts SOURCE TARGET /proc/PID/ns/user`.
 */
import { closeSync, openSync } from 'node:fs'
import koffi from 'koffi'

const libc = koffi.load('libc.so.6')
const syscall = libc.func('long syscall(long number, ...)')

const openTree = 428
const moveMount = 429
const mountSetattr = 442
const atFdcwd = -100
const openTreeClone = 1
const atEmptyPath = 0x1000
const moveMountFromEmptyPath = 4
const attributeReadOnly = 0x1n
const attributeNoDev = 0x4n
const attributeIdmap = 0x100000n

const [source = '', target = '', userNamespace = ''] = process.argv.slice(2)
const tree = check(
  'open_tree',
  syscall(openTree, 'int', atFdcwd, 'str', source, 'uint', openTreeClone),
)
const owner = openSync(userNamespace, 'r')
const attributes = Buffer.alloc(32) // struct mount_attr: set, clear, propagation, userns_fd
attributes.writeBigUInt64LE(attributeReadOnly | attributeNoDev | attributeIdmap, 0)
attributes.writeBigUInt64LE(BigInt(owner), 24)
check(
  'mount_setattr',
  syscall(
    mountSetattr,
    'int',
    tree,
    'str',
    '',
    'uint',
    atEmptyPath,
    'void *',
    attributes,
    'size_t',
    32,
  ),
)
check(
  'move_mount',
  syscall(
    moveMount,
    'int',
    tree,
    'str',
    '',
    'int',
    atFdcwd,
    'str',
    target,
    'uint',
    moveMountFromEmptyPath,
  ),
)
closeSync(owner)

function check(name: string, result: number): number {
  if (result < 0) throw new Error(`${name} ${source} ${target}: errno ${koffi.errno()}`)
  return result
}
