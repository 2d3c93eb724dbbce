import { arch } from 'node:process'
import { Fault } from '@atoll/kit/fault'
import { releaseOf } from '@atoll/node/setup/runtime-release'
import type { ServerConfig } from '../config.ts'
import type { Manifest } from './manifest.ts'

export interface MachineFacts {
  readonly architecture: string
  /** Returns undefined if there is no runsc. */
  runscRelease(): Promise<string | undefined>
}

export function thisMachine({ node }: Pick<ServerConfig, 'node'>): MachineFacts {
  const ask = releaseOf(node.ATOLL_RUNSC ?? 'runsc')
  return { architecture: arch, runscRelease: () => ask().catch(() => undefined) }
}

/** Throws a fault if this machine cannot use what the backup has. */
export async function checkMachine(
  { architecture, memoryReleases }: Pick<Manifest, 'architecture' | 'memoryReleases'>,
  machine: MachineFacts,
  { anyRunsc }: { readonly anyRunsc: boolean },
): Promise<void> {
  if (architecture !== machine.architecture) {
    throw new Fault(
      'conflict',
      'restore_architecture',
      `The backup is of a machine with ${architecture}, and this one has ${machine.architecture}: its templates and sandboxes cannot run here. Restore it on a machine with ${architecture}`,
    )
  }
  if (memoryReleases.length === 0 || anyRunsc) return
  const present = await machine.runscRelease()
  const others = memoryReleases.filter((release) => release !== present)
  if (others.length === 0) return
  throw new Fault(
    'conflict',
    'restore_runsc',
    `The backup has memory that ${others.join(' and ')} wrote, and this machine has ${present ?? 'no runsc'}, which cannot read it. ` +
      'Set ATOLL_RUNSC to that release. With --any-runsc, such sandboxes resume without memory only, and such snapshots create no sandboxes',
  )
}
