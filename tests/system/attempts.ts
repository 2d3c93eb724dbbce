/**
 * Attacks of hostile code in a sandbox, as Python and shell programs that run there as root. Each program prints
 * what it achieved. A secure sandbox lets it achieve nothing.
 */

/** Prints the PID and command line of each process in /proc. */
export const commandLines = `
import os
lines = []
for pid in filter(str.isdigit, os.listdir('/proc')):
    try:
        line = open(f'/proc/{pid}/cmdline', 'rb').read().replace(b'\\0', b' ').decode(errors='replace')
        lines.append(f'{pid} {line}')
    except OSError:
        pass
print(json.dumps(lines))
`

/** Looks for host folders: by name, by paths out of the root, by links, and from every open file. */
export const hostPaths = `
import os
starts = ['', '/..' * 20, '/proc/self/root/../../..', '/proc/self/cwd' + '/..' * 20]
for pid in filter(str.isdigit, os.listdir('/proc')):
    starts += [f'/proc/{pid}/root', f'/proc/{pid}/root/../..', f'/proc/{pid}/cwd' + '/..' * 20]
    try:
        starts += [f'/proc/{pid}/fd/{fd}' + '/..' * 20 for fd in os.listdir(f'/proc/{pid}/fd')]
    except OSError:
        pass
found = [s + t for s in starts for t in args if os.path.exists(s + t)]

# A process outside its root can climb to the root of all.
os.makedirs('/tmp/cage', exist_ok=True)
if os.fork() == 0:
    handle = os.open('/', os.O_RDONLY)
    os.chroot('/tmp/cage')
    os.fchdir(handle)
    for _ in range(50): os.chdir('..')
    os.chroot('.')
    os._exit(1 if any(os.path.exists(t) for t in args) else 0)
if os.wait()[1] != 0: found.append('climbed out')
os.rmdir('/tmp/cage')

for target in args:
    os.symlink('/..' * 20 + target, '/tmp/link')
    if os.path.exists('/tmp/link'): found.append('link to ' + target)
    os.unlink('/tmp/link')
print(json.dumps(found))
`

/** Creates device nodes for disks (loop, virtio, SCSI), memory and ports. */
export const deviceNodes = `
import os, stat
made = []
nodes = [(stat.S_IFBLK, 7, 0), (stat.S_IFBLK, 254, 0), (stat.S_IFBLK, 8, 0), (stat.S_IFCHR, 1, 1), (stat.S_IFCHR, 1, 4)]
for kind, major, minor in nodes:
    for folder in ['/tmp', '/dev', '/dev/shm', '/run']:
        path = f'{folder}/node'
        try:
            os.mknod(path, kind | 0o600, os.makedev(major, minor))
            open(path, 'rb').read(1)
            made.append([path, major, minor])
        except OSError:
            pass
        if os.path.lexists(path): os.unlink(path)
print(json.dumps(made))
`

/** Tries to change the folder with envd and its Node.js, which all sandboxes share. */
export const writesToShared = `
exec 2>/dev/null
attempt() { "$@" && echo "done: $*"; }
attempt touch /.atoll/planted
attempt rm -f /.atoll/envd.js
attempt chmod 777 /.atoll/guest
attempt sh -c 'echo x >> /.atoll/envd.js'
attempt mv /.atoll/envd.js /.atoll/envd2.js
attempt ln /.atoll/guest /.atoll/guest2
mount -o remount,rw /.atoll
mount -o remount,bind,rw /.atoll
attempt touch /.atoll/planted
attempt sh -c 'echo x >> /.atoll/envd.js'
mkdir /tmp/again
if mount --bind /.atoll /tmp/again; then
  mount -o remount,rw,bind /tmp/again
  attempt touch /tmp/again/planted
  attempt sh -c 'echo x >> /tmp/again/envd.js'
  umount /tmp/again
fi
rmdir /tmp/again
mount -o remount,rw /usr/bin/sudo && attempt sh -c 'echo x >> /usr/bin/sudo'
true
`

/** Allocates and touches up to three times the memory limit. */
export const takeMemory = `exec python3 -c '
taken = []
for _ in range(192): taken.append(bytearray(b"x") * (8 << 20))
'`

/** Allocates the same memory in a program whose other threads wait forever, as those of most libraries do. */
export const takeMemoryBesideThreads = `exec python3 -c '
import threading
never, taken = threading.Event(), []
for _ in range(4): threading.Thread(target=never.wait, daemon=True).start()
for _ in range(192): taken.append(bytearray(b"x") * (8 << 20))
'`

/** Allocates the same memory in a second thread while the main thread joins it. */
export const takeMemoryInThread = `exec python3 -c '
import threading
taken = []
def take():
    for _ in range(192): taken.append(bytearray(b"x") * (8 << 20))
thread = threading.Thread(target=take, daemon=True)
thread.start()
thread.join()
'`

/** Holds 250 MB until killed. */
export const holdMemory = `exec python3 -c '
import time
held = bytearray(b"x") * (250 << 20)
print("held", flush=True)
time.sleep(1000)
'`

/** Holds 250 MB while one thread maps memory constantly and another uses CPU. */
export const keepMapping = `exec python3 -c '
import mmap, threading
held = bytearray(b"x") * (250 << 20)
def work():
    while True: pass
threading.Thread(target=work, daemon=True).start()
print("held", flush=True)
while True:
    with mmap.mmap(-1, 1 << 20) as memory: memory[0] = 1
'`

/** Forks until an error stops it and prints the error. Limits itself to 5,000 children, which exit by themselves. */
export const forkBomb = `
import errno, os, signal, time
children, ended = [], 'nothing'
while len(children) < 5000:
    try:
        child = os.fork()
    except OSError as error:
        ended = errno.errorcode[error.errno]
        break
    if child == 0:
        time.sleep(30)
        os._exit(0)
    children.append(child)
for child in children: os.kill(child, signal.SIGKILL)
for child in children: os.waitpid(child, 0)
print(json.dumps(ended))
`

/**
 * Makes system calls with invalid arguments: a seccomp filter refuses before it checks them, with EPERM, or ENOSYS for
 * clone3.
 */
export const systemCalls = `
import ctypes, errno, os, socket
libc = ctypes.CDLL(None, use_errno=True)
numbers = {
    'x86_64': dict(mount=165, umount2=166, pivot_root=155, unshare=272, setns=308, bpf=321, perf_event_open=298,
        userfaultfd=323, io_uring_setup=425, keyctl=250, add_key=248, open_by_handle_at=304, init_module=175,
        finit_module=313, kexec_load=246, fanotify_init=300, clone3=435, swapon=167, settimeofday=164, syslog=103,
        fsopen=430, open_tree=428, move_mount=429, quotactl=179, iopl=172, acct=163, reboot=169),
    'aarch64': dict(mount=40, umount2=39, pivot_root=41, unshare=97, setns=268, bpf=280, perf_event_open=241,
        userfaultfd=282, io_uring_setup=425, keyctl=219, add_key=217, open_by_handle_at=265, init_module=105,
        finit_module=273, kexec_load=104, fanotify_init=262, clone3=435, swapon=224, settimeofday=170, syslog=116,
        fsopen=430, open_tree=428, move_mount=429, quotactl=60, acct=89, reboot=142),
}[os.uname().machine]
allowed = []
for name, number in numbers.items():
    ctypes.set_errno(0)
    result = libc.syscall(number, -1, -1, -1, -1, -1)
    if result != -1 or ctypes.get_errno() not in (errno.EPERM, errno.ENOSYS):
        allowed.append([name, result, errno.errorcode.get(ctypes.get_errno())])
try:
    socket.socket(40, socket.SOCK_STREAM)
    allowed.append('vsock')
except OSError as error:
    if error.errno != errno.EPERM: allowed.append(['vsock', str(error)])
print(json.dumps(allowed))
`

/** Connects to each argument: protocol, address, port. Prints each response, or null without a connection. */
export const reach = `
import socket
from concurrent.futures import ThreadPoolExecutor
def reach(target):
    protocol, host, port = target
    kind = socket.SOCK_STREAM if protocol == 'tcp' else socket.SOCK_DGRAM
    with socket.socket(socket.AF_INET, kind) as s:
        s.settimeout(2)
        try:
            s.connect((host, port))
            if protocol == 'udp': s.send(b'hello')
        except OSError:
            return None
        try:
            return s.recv(100).decode().strip()
        except OSError:
            return None if protocol == 'udp' else 'connected'
with ThreadPoolExecutor(64) as pool: print(json.dumps(list(pool.map(reach, args))))
`

/** Sends a datagram with a foreign source address, then one with its own. Prints the error that refused it, if any. */
export const spoof = `
import errno, socket, struct
host, port, foreign = args
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
    s.connect((host, port))
    own = s.getsockname()[0]
def packet(source, payload):
    udp = struct.pack('!HHHH', 4000, port, 8 + len(payload), 0) + payload
    ends = socket.inet_aton(source) + socket.inet_aton(host)
    def header(checksum): return struct.pack('!BBHHHBBH', 0x45, 0, 20 + len(udp), 1, 0, 64, 17, checksum) + ends
    total = sum(struct.unpack('!10H', header(0)))
    while total >> 16: total = (total & 0xffff) + (total >> 16)
    return header(~total & 0xffff) + udp
try:
    with socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW) as s:
        s.setsockopt(socket.IPPROTO_IP, socket.IP_HDRINCL, 1)
        s.sendto(packet(foreign, b'spoofed'), (host, 0))
        s.sendto(packet(own, b'genuine'), (host, 0))
    print(json.dumps('sent'))
except OSError as error:
    print(json.dumps(errno.errorcode[error.errno]))
`
