import { Fault } from '@atoll/kit/fault'
import type { CellRecord, Owner } from './cell.ts'
import type { Slot } from '../network/slot.ts'

export interface RunningSandbox {
  readonly record: CellRecord & { readonly owner: Owner }
  readonly slot: Slot
}

/** A cell with an owner and no processes. Its files may be evicted. */
export type PausedSandbox = CellRecord & { readonly owner: Owner }

/** Whether the files of a paused sandbox are in the object store only. */
export function isEvicted({ phase }: Pick<CellRecord, 'phase'>): boolean {
  return phase === 'evicted'
}

export function sandboxEvicted(sandboxId: string): Fault {
  return new Fault(
    'conflict',
    'sandbox_evicted',
    `Sandbox ${sandboxId} is paused, and its files are in the object store only: resume it first`,
  )
}

export interface Identity {
  readonly sandboxId: string
  /** Absent: envd accepts requests without a token. */
  readonly accessToken: string | undefined
}

/** Identity and settings for envd. Absent fields keep their value in envd, except the token. */
export interface EnvdInit extends Identity {
  readonly templateId: string
  /** User of commands that name no user. */
  readonly defaultUser: string
  /** Undefined: the home of the user that runs the command. */
  readonly defaultWorkdir: string | undefined
  readonly envVars?: Readonly<Record<string, string>>
  /** Certificate authorities that programs should trust, in PEM. */
  readonly caBundle?: string
  /** Granted size: under runc, the kernel shows the size of the whole machine. */
  readonly cpuCount: number
  readonly memoryMb: number
}
