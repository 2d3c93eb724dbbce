import { CreatedTeamApiKey, TeamApiKey } from '@atoll/contracts/teams/api-keys'
import { z } from 'zod'
import { readReply } from './read-reply.ts'
import type { ApiKey, CreatedApiKey } from '../replies.ts'
import { sendRequest } from './request.ts'
import type { CallOptions, PlatformOptions } from './request.ts'

export interface KeyCalls {
  listKeys(call?: CallOptions): Promise<readonly ApiKey[]>
  createKey(name: string, call?: CallOptions): Promise<CreatedApiKey>
  deleteKey(keyId: string, call?: CallOptions): Promise<void>
}

export function keyCalls(options: PlatformOptions): KeyCalls {
  return {
    async listKeys(call) {
      const reply = await sendRequest(options, { method: 'GET', path: '/api-keys', ...call })
      return readReply(z.array(TeamApiKey), reply)
    },
    async createKey(name, call) {
      const request = { method: 'POST', path: '/api-keys', body: { name }, ...call } as const
      return readReply(CreatedTeamApiKey, await sendRequest(options, request))
    },
    async deleteKey(keyId, call) {
      const path = `/api-keys/${encodeURIComponent(keyId)}`
      await sendRequest(options, { method: 'DELETE', path, ...call })
    },
  }
}
