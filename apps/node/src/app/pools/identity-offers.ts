import { Fault } from '@atoll/kit/fault'
import type { Shape } from '../../domain/sandboxes/cell.ts'
import type { Identity } from '../../domain/sandboxes/sandbox.ts'

/** Identities that the control plane offers for pre-warmed cells, oldest first. */
export interface IdentityOffers {
  /** Resolves with the shape of the cell that got the identity. */
  add(identity: Identity, signal: AbortSignal): Promise<Shape>
  take(): IdentityOffer | undefined
  /** Returns an offer whose cell failed. Ignores one that was withdrawn meanwhile. */
  putBack(offer: IdentityOffer): void
}

export interface IdentityOffer {
  readonly identity: Identity
  readonly signal: AbortSignal
  readonly resolve: (shape: Shape) => void
}

export function createIdentityOffers(): IdentityOffers {
  const offers = new Set<IdentityOffer>()
  return {
    async add(identity, signal) {
      signal.throwIfAborted()
      const { promise, resolve, reject } = Promise.withResolvers<Shape>()
      const offer = { identity, signal, resolve }
      offers.add(offer)
      signal.addEventListener(
        'abort',
        () => {
          offers.delete(offer)
          reject(new Fault('unavailable', 'not_named', 'The offer of this identity was withdrawn'))
        },
        { once: true },
      )
      return promise
    },
    take() {
      const [offer] = offers
      if (offer) offers.delete(offer)
      return offer
    },
    putBack(offer) {
      if (!offer.signal.aborted) offers.add(offer)
    },
  }
}
