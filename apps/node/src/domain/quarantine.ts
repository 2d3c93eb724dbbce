import { Fault } from '@atoll/kit/fault'

/**
 * A record that this release cannot read: damaged, or written by a newer release. Its files stay where they are. Nothing
 * uses them and nothing removes them, so a release that can read them finds them as they were left.
 */
export interface Quarantined {
  readonly kind: 'sandbox' | 'snapshot' | 'template' | 'layer'
  /** The file or folder that is kept. */
  readonly path: string
  /** For operators. */
  readonly reason: string
}

export interface QuarantinedCell extends Quarantined {
  readonly cellId: string
  /** As far as the damaged record shows it. */
  readonly sandboxId?: string
  readonly slotNumber?: number
}

/** For API users: says nothing about paths or contents of the record. */
export function quarantinedFault(what: string): Fault {
  return new Fault(
    'conflict',
    'record_unreadable',
    `${what} cannot be used: its record on the node is damaged or was written by a newer release. ` +
      'Its data is kept; the operator finds the reason with `atoll doctor`.',
  )
}
