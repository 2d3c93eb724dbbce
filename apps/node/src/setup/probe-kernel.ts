/** Probes kernel features that Atoll needs by using them in temporary namespaces. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { tryRun } from '@atoll/kit/run'
import type { Finding } from './finding.ts'

interface KernelProbe {
  readonly name: string
  readonly use: string
  readonly fix: string
  readonly namespaces: readonly string[]
  /** Shell script; `$0` is an empty folder. */
  readonly script: string
}

const probes: readonly KernelProbe[] = [
  {
    name: 'overlayfs',
    use: 'template layers below, the disk of the sandbox above',
    fix: 'modprobe overlay',
    namespaces: ['--mount'],
    script: `mount -t tmpfs tmpfs "$0" && cd "$0" && mkdir lower upper work merged &&
      mount -t overlay overlay -o lowerdir=lower,upperdir=upper,workdir=work merged &&
      touch merged/file && test -e upper/file`,
  },
  {
    name: 'loop and ext4',
    use: 'disks of sandboxes with a size that holds',
    fix: 'modprobe loop ext4',
    namespaces: ['--mount'],
    script: `mount -t tmpfs tmpfs "$0" && cd "$0" && truncate -s 8M image && mkdir disk &&
      mkfs.ext4 -q -O ^has_journal image && mount -o loop image disk && touch disk/file &&
      umount disk`,
  },
  {
    name: 'user namespaces',
    use: 'root in a runc sandbox is an unprivileged user outside',
    fix: 'sysctl -w user.max_user_namespaces=15000',
    namespaces: ['--user', '--map-root-user'],
    script: 'true',
  },
  {
    name: 'veth',
    use: 'the network interface of a sandbox',
    fix: 'modprobe veth',
    namespaces: ['--net'],
    script: 'ip link add left type veth peer name right && ip link set left up',
  },
  {
    name: 'nftables',
    use: 'NAT and the rules for what leaves a sandbox',
    fix: 'modprobe nf_tables nft_masq nft_ct',
    namespaces: ['--net'],
    script: `nft '
      table inet probe {
        set closed { type ipv4_addr; flags interval; elements = { 10.0.0.0/8 } }
        chain out {
          type filter hook forward priority filter;
          ct state established accept
          ip daddr @closed drop
        }
        chain masks {
          type nat hook postrouting priority srcnat;
          ip saddr 10.0.0.0/8 masquerade
        }
      }'`,
  },
]

export function probeKernel(): Promise<Finding[]> {
  return Promise.all(probes.map(probe))
}

async function probe({ name, use, fix, namespaces, script }: KernelProbe): Promise<Finding> {
  const dir = await mkdtemp(join(tmpdir(), 'atoll-kernel-'))
  try {
    const { code, stderr } = await tryRun('unshare', [...namespaces, 'sh', '-c', script, dir], {
      timeoutMs: 10_000,
    })
    if (code === 0) return { name, state: 'ok', detail: use }
    const wrong = stderr.trim().split('\n').at(-1) || 'gave no answer within 10 s'
    return { name, state: 'missing', detail: wrong, fix }
  } finally {
    await rm(dir, { recursive: true })
  }
}
