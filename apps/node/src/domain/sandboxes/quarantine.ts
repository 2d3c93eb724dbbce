import { Fault } from '@atoll/kit/fault'

/**
 * A record that this release cannot read: damaged, or written by a newer release. Its files stay where they are. Nothing
 * uses them and nothing removes them, so a release that can read them finds them as they were left.
 */
export interface Quarantined {
  readonly kind: 'sandbox' | 'snapshot' | 'template' | 'layer'
  /** File or folder that is kept. */
  readonly path: string
  /** Shown to operators. */
  readonly reason: string
}

export interface QuarantinedCell extends Quarantined {
  readonly cellId: string
  /** Parsed from the damaged record where possible. */
  readonly sandboxId?: string
  readonly slotNumber?: number
}

/** Fault for API users: reveals no paths and no contents of the record. */
export function quarantinedFault(what: string): Fault {
  return new Fault(
    'conflict',
    'record_unreadable',
    `${what} cannot be used: its record on the node is damaged or was written by a newer release. ` +
      'Its data is kept; the operator finds the reason with `atoll doctor`.',
  )
}
