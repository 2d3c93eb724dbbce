import { Secret } from '@atoll/contracts/secrets'
import { readPages, readReply } from './read-reply.ts'
import type * as replies from '../replies.ts'
import { sendRequest } from './request.ts'
import type { CallOptions, PlatformOptions } from './request.ts'

/** Operations on secrets. The server never returns a value. A reference is an ID or a name. */
export interface SecretCalls {
  /** Lists newest first. */
  listSecrets(call?: CallOptions): AsyncIterable<replies.Secret>
  createSecret(secret: NewSecret, call?: CallOptions): Promise<replies.Secret>
  /** Replaces the value, in running sandboxes too. Leaves the metadata unchanged if there is none. */
  updateSecret(
    reference: string,
    update: Omit<NewSecret, 'name'>,
    call?: CallOptions,
  ): Promise<replies.Secret>
  deleteSecret(reference: string, call?: CallOptions): Promise<void>
}

export interface NewSecret {
  readonly name: string
  readonly value: string
  readonly metadata?: Record<string, string> | undefined
}

export function secretCalls(options: PlatformOptions): SecretCalls {
  return {
    listSecrets(call = {}) {
      return readPages(Secret, options, { path: '/secrets', ...call })
    },
    async createSecret(body, call) {
      const request = { method: 'POST', path: '/secrets', body, ...call } as const
      return readReply(Secret, await sendRequest(options, request))
    },
    async updateSecret(reference, body, call) {
      const request = { method: 'POST', path: secretPath(reference), body, ...call } as const
      return readReply(Secret, await sendRequest(options, request))
    },
    async deleteSecret(reference, call) {
      await sendRequest(options, { method: 'DELETE', path: secretPath(reference), ...call })
    },
  }
}

function secretPath(reference: string): string {
  return `/secrets/${encodeURIComponent(reference)}`
}
