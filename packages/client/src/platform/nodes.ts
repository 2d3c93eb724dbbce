import { ForgottenNode, JoinToken } from '@atoll/contracts/fleet-members'
import { Node, NodeDetail, NodeMoves } from '@atoll/contracts/nodes'
import { z } from 'zod'
import { readReply } from './read-reply.ts'
import type { ListedNode, NodeInfo } from '../replies.ts'
import { sendRequest } from './request.ts'
import type { CallOptions, PlatformOptions } from './request.ts'

/** Operations on the machines that run sandboxes, and on the members of a fleet. They need the operator's token. */
export interface NodeCalls {
  listNodes(call?: CallOptions): Promise<readonly ListedNode[]>
  getNode(id: string, call?: CallOptions): Promise<NodeInfo>
  /** `moveSandboxes`: with `draining`, running sandboxes are moved to other nodes. */
  setNodeStatus(
    id: string,
    status: 'ready' | 'draining',
    call?: CallOptions & { readonly moveSandboxes?: boolean },
  ): Promise<void>
  getNodeMoves(id: string, call?: CallOptions): Promise<Readonly<z.infer<typeof NodeMoves>>>
  createJoinToken(
    role: 'edge' | 'node',
    call?: CallOptions,
  ): Promise<Readonly<z.infer<typeof JoinToken>>>
  removeFleetMember(id: string, call?: CallOptions): Promise<void>
  /** Call again until it is done. */
  forgetNode(id: string, call?: CallOptions): Promise<Readonly<z.infer<typeof ForgottenNode>>>
}

export function nodeCalls(options: PlatformOptions): NodeCalls {
  const pathOf = (id: string) => `/nodes/${encodeURIComponent(id)}`
  return {
    async listNodes(call) {
      const request = { method: 'GET', path: '/nodes', isOperator: true, ...call } as const
      return readReply(z.array(Node), await sendRequest(options, request))
    },
    async getNode(id, call) {
      const request = { method: 'GET', path: pathOf(id), isOperator: true, ...call } as const
      return readReply(NodeDetail, await sendRequest(options, request))
    },
    async setNodeStatus(id, status, { moveSandboxes, ...call } = {}) {
      const request = { method: 'POST', path: pathOf(id), isOperator: true } as const
      const body = { status, ...(moveSandboxes !== undefined && { moveSandboxes }) }
      await sendRequest(options, { ...request, body, ...call })
    },
    async getNodeMoves(id, call) {
      const request = { method: 'GET', path: `${pathOf(id)}/moves`, isOperator: true } as const
      return readReply(NodeMoves, await sendRequest(options, { ...request, ...call }))
    },
    async createJoinToken(role, call) {
      const request = { method: 'POST', path: '/fleet/tokens', isOperator: true } as const
      const reply = await sendRequest(options, { ...request, body: { role }, ...call })
      return readReply(JoinToken, reply)
    },
    async removeFleetMember(id, call) {
      const path = `/fleet/members/${encodeURIComponent(id)}`
      await sendRequest(options, { method: 'DELETE', path, isOperator: true, ...call })
    },
    async forgetNode(id, call) {
      const path = `/fleet/members/${encodeURIComponent(id)}/forget`
      const request = { method: 'POST', path, isOperator: true, ...call } as const
      return readReply(ForgottenNode, await sendRequest(options, request))
    },
  }
}
