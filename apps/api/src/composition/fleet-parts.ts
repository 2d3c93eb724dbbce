import type { Transport } from '@connectrpc/connect'

/** The process gives these parts to an api of a fleet. `atoll up` has none. */
export interface FleetParts {
  /** Connects to a node with mutual TLS. */
  connect(node: { readonly id: string; readonly address: string }): {
    readonly transport: Transport
    close(): void
  }
  /** A node that is silent for so long is lost. */
  readonly lostSeconds: number
  /** Returns the text of a join token with this secret. */
  formatToken(secret: string): string
}
