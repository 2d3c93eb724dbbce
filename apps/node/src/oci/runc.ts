import { join } from 'node:path'
import { Fault } from '@atoll/kit/fault'
import type { MountNamespace } from '../linux/mounts/mount-namespace.ts'
import type { Mount } from './bundle.ts'
import { writeBundle } from './bundle.ts'
import { createOciCommands } from './commands.ts'
import { seccompRules } from './syscalls.ts'
import type { Runtime } from '../domain/sandboxes/runtime.ts'

/** ID range far from those of useradd and systemd, so that it overlaps no account of the host. */
export const shiftedIds = { idShift: 2_000_000_000, idCount: 65_536 } as const

/**
 * Runs sandboxes with runc, for trusted code or machines without gVisor: they share the host's kernel. Root inside is
 * an unprivileged user outside, system calls are on an allowlist, and host details in /proc are masked.
 */
export function createRunc(parts: {
  readonly namespace: MountNamespace
  readonly stateDir: string
  readonly cgroupParent: string
  readonly release: Runtime['release']
}): Runtime {
  const commands = createOciCommands({
    namespace: parts.namespace,
    program: 'runc',
    root: join(parts.stateDir, 'runc'),
    flags: [],
    ownerOf: (entry) => entry,
  })
  return {
    name: 'runc',
    noticesKillsLate: false,
    idShift: shiftedIds.idShift,

    async start(request) {
      await writeBundle(request, {
        cgroupParent: parts.cgroupParent,
        capabilities,
        mounts,
        initArgs: [],
        linux,
        namespaces: [{ type: 'user' }, { type: 'cgroup' }],
        pidsLimit: processes,
      })
      return commands.run(request.cell.cellId, request.bundleDir)
    },

    release: parts.release,
    memoryFormat: async () => undefined,
    restore: keepsNone,
    saveMemory: keepsNone,
    freeze: (cellId) => commands.execute('pause', [cellId]),

    async thaw(cellId) {
      await commands.execute('resume', [cellId]).catch((error: unknown) => {
        if (!(error instanceof Fault && /not paused/.test(error.message))) throw error
      })
    },

    // Root inside lacks the capability to set the hostname, so the host sets it.
    async setHostname({ pid }, name) {
      await parts.namespace.run('nsenter', [`--uts=/proc/${pid}/ns/uts`, 'hostname', name])
    },

    // runc has no background timers to throttle.
    setIdleLevel: () => {},
    orphanedRequests: () => [],

    remove: commands.removeState,
    list: commands.list,
  }
}

function keepsNone(): Promise<never> {
  return Promise.reject(
    new Fault(
      'invalid',
      'memory_not_kept',
      'The runtime runc can keep only files, not memory: pause without memory, or use a node with gVisor',
    ),
  )
}

/** Limit on processes and threads of one sandbox. */
const processes = 1024

const idMapping = [{ containerID: 0, hostID: shiftedIds.idShift, size: shiftedIds.idCount }]

const linux = {
  uidMappings: idMapping,
  gidMappings: idMapping,
  maskedPaths: [
    '/proc/acpi',
    '/proc/asound',
    '/proc/interrupts',
    '/proc/kallsyms',
    '/proc/kcore',
    '/proc/keys',
    '/proc/latency_stats',
    '/proc/mdstat',
    '/proc/sched_debug',
    '/proc/scsi',
    '/proc/timer_list',
    '/proc/timer_stats',
  ],
  readonlyPaths: ['/proc/bus', '/proc/fs', '/proc/irq', '/proc/sys', '/proc/sysrq-trigger'],
  seccomp: {
    defaultAction: 'SCMP_ACT_ERRNO',
    defaultErrnoRet: 1,
    architectures: ['SCMP_ARCH_X86_64', 'SCMP_ARCH_AARCH64'],
    syscalls: seccompRules,
  },
}

const mounts: Mount[] = [
  {
    destination: '/dev/mqueue',
    type: 'mqueue',
    source: 'mqueue',
    options: ['nosuid', 'noexec', 'nodev'],
  },
  // The host's /sys is not for sandboxes, and a separate sysfs needs ownership of the network namespace.
  {
    destination: '/sys',
    type: 'tmpfs',
    source: 'tmpfs',
    options: ['nosuid', 'noexec', 'nodev', 'ro', 'size=4k'],
  },
]

/** Capabilities that package managers, sudo and servers inside need; none reaches beyond the sandbox. */
const capabilities = [
  'CAP_AUDIT_WRITE',
  'CAP_CHOWN',
  'CAP_DAC_OVERRIDE',
  'CAP_FOWNER',
  'CAP_FSETID',
  'CAP_KILL',
  'CAP_MKNOD',
  'CAP_NET_BIND_SERVICE',
  'CAP_NET_RAW',
  'CAP_SETFCAP',
  'CAP_SETGID',
  'CAP_SETPCAP',
  'CAP_SETUID',
  'CAP_SYS_CHROOT',
  'CAP_SYS_PTRACE',
]
