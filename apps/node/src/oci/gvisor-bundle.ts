import { join } from 'node:path'
import type { StartRequest } from '../domain/sandboxes/runtime.ts'
import { envdMount, writeBundle } from './bundle.ts'
import type { Mount } from './bundle.ts'

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

/** Mounts of files of the host. */
export function gvisorBinds(request: StartRequest): readonly Mount[] {
  return [envdMount(request.envdDir), ...sudoMounts(request)]
}

function gvisorMounts(request: StartRequest): readonly Mount[] {
  const system = {
    destination: '/sys',
    type: 'sysfs',
    source: 'sysfs',
    options: ['ro', 'nosuid', 'noexec', 'nodev'],
  }
  return [system, ...sudoMounts(request)]
}

/** gVisor ignores setuid bits, so the guest program, served by PID 1, replaces sudo. */
function sudoMounts({ hasSudo, envdDir }: StartRequest): readonly Mount[] {
  if (!hasSudo) return []
  const options = ['bind', 'ro']
  return [{ destination: '/usr/bin/sudo', type: 'bind', source: join(envdDir, 'sudo'), options }]
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
