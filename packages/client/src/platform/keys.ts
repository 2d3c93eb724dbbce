import { CreatedTeamApiKey, TeamApiKey } from '@atoll/contracts/keys'
import { z } from 'zod'
import { readReply } from '../read-reply.ts'
import type { ApiKey, CreatedApiKey } from '../replies.ts'
import { exchange } from '../request.ts'
import type { Call, PlatformOptions } from '../request.ts'

export interface KeyCalls {
  listKeys(call?: Call): Promise<readonly ApiKey[]>
  createKey(name: string, call?: Call): Promise<CreatedApiKey>
  deleteKey(keyId: string, call?: Call): Promise<void>
}

export function keyCalls(options: PlatformOptions): KeyCalls {
  return {
    async listKeys(call) {
      const reply = await exchange(options, { method: 'GET', path: '/api-keys', ...call })
      return readReply(z.array(TeamApiKey), reply)
    },
    async createKey(name, call) {
      const request = { method: 'POST', path: '/api-keys', body: { name }, ...call } as const
      return readReply(CreatedTeamApiKey, await exchange(options, request))
    },
    async deleteKey(keyId, call) {
      const path = `/api-keys/${encodeURIComponent(keyId)}`
      await exchange(options, { method: 'DELETE', path, ...call })
    },
  }
}
