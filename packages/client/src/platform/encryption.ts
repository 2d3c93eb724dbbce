import { KeyRotation } from '@atoll/contracts/encryption'
import type { KeyRotationReply } from '../replies.ts'
import { readReply } from './read-reply.ts'
import { sendRequest } from './request.ts'
import type { CallOptions, PlatformOptions } from './request.ts'

/** Operations on the encryption keys of the server. They need the operator's token. */
export interface EncryptionCalls {
  rotateEncryptionKey(call?: CallOptions): Promise<KeyRotationReply>
}

export function encryptionCalls(options: PlatformOptions): EncryptionCalls {
  return {
    async rotateEncryptionKey(call) {
      const path = '/admin/encryption/rotate'
      const request = { method: 'POST', path, isOperator: true, ...call } as const
      return readReply(KeyRotation, await sendRequest(options, request))
    },
  }
}
