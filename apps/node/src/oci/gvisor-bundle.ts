import { join } from 'node:path'
import type { StartRequest } from '../domain/sandboxes/runtime.ts'
import { writeBundle } from './bundle.ts'

/** Limit on host threads of one sandbox's kernel; each process inside takes a few. */
const hostThreads = 4096

export function writeGvisorBundle(request: StartRequest, cgroupParent: string): Promise<void> {
  return writeBundle(request, {
    cgroupParent,
    capabilities,
    mounts: gvisorMounts(request),
    initArgs: ['--sudo'],
    linux: {},
    namespaces: [],
    pidsLimit: hostThreads,
  })
}

function gvisorMounts({ hasSudo, envdDir }: StartRequest) {
  const system = {
    destination: '/sys',
    type: 'sysfs',
    source: 'sysfs',
    options: ['ro', 'nosuid', 'noexec', 'nodev'],
  }
  if (!hasSudo) return [system]
  // gVisor ignores setuid bits, so the guest program, served by PID 1, replaces sudo.
  const sudo = {
    destination: '/usr/bin/sudo',
    type: 'bind',
    source: join(envdDir, 'sudo'),
    options: ['bind', 'ro'],
  }
  return [system, sudo]
}

const capabilities = [
  'CAP_AUDIT_WRITE',
  'CAP_CHOWN',
  'CAP_DAC_OVERRIDE',
  'CAP_DAC_READ_SEARCH',
  'CAP_FOWNER',
  'CAP_FSETID',
  'CAP_IPC_LOCK',
  'CAP_IPC_OWNER',
  'CAP_KILL',
  'CAP_LEASE',
  'CAP_LINUX_IMMUTABLE',
  'CAP_MKNOD',
  'CAP_NET_ADMIN',
  'CAP_NET_BIND_SERVICE',
  'CAP_NET_BROADCAST',
  'CAP_NET_RAW',
  'CAP_SETFCAP',
  'CAP_SETGID',
  'CAP_SETPCAP',
  'CAP_SETUID',
  'CAP_SYS_ADMIN',
  'CAP_SYS_CHROOT',
  'CAP_SYS_NICE',
  'CAP_SYS_PTRACE',
  'CAP_SYS_RESOURCE',
  'CAP_SYS_TIME',
  'CAP_SYS_TTY_CONFIG',
]
