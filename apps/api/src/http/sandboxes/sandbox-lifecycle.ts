import {
  connectSandbox,
  connectSandboxV2,
  pauseSandbox,
  resumeSandbox,
} from '@atoll/contracts/sandboxes/lifecycle'
import type { FastifyInstance } from 'fastify'
import type { Authenticate } from '../../app/teams/auth.ts'
import type { Pausing } from '../../app/sandboxes/pause-sandbox.ts'
import type { ConnectRequest, Sandboxes } from '../../app/sandboxes/sandboxes.ts'
import { addTeamRoute } from '../server/route.ts'
import { toView } from './sandbox-view.ts'
import type { TokensOf } from './sandbox-view.ts'

const defaultSeconds = { resume: 15, connectV2: 300 }

interface LifecycleRoutes {
  readonly authenticate: Authenticate
  readonly sandboxes: Sandboxes
  readonly pausing: Pausing
  readonly tokensOf: TokensOf
}

export function addLifecycleRoutes(server: FastifyInstance, routes: LifecycleRoutes): void {
  const { authenticate, sandboxes, pausing, tokensOf } = routes
  addTeamRoute(server, pauseSandbox, authenticate, async ({ params, body }, { teamId }) => {
    await pausing.pause(teamId, params.sandboxID, body?.memory ?? true)
    return { status: 204 }
  })
  addTeamRoute(server, resumeSandbox, authenticate, async ({ params, body }, { teamId }) => {
    const { timeout = defaultSeconds.resume, memory = true, autoPause } = body ?? {}
    const request = { seconds: timeout, memory, autoPause }
    const sandbox = await sandboxes.resume(teamId, params.sandboxID, request)
    return { status: 201, body: toView(sandbox, tokensOf) }
  })

  const connect = async (teamId: string, id: string, request: ConnectRequest) => {
    const { sandbox, isResumed } = await sandboxes.connect(teamId, id, request)
    return { status: isResumed ? 201 : 200, body: toView(sandbox, tokensOf) }
  }
  addTeamRoute(server, connectSandbox, authenticate, async ({ params, body }, { teamId }) =>
    connect(teamId, params.sandboxID, { seconds: body.timeout, memory: body.memory ?? true }),
  )
  addTeamRoute(server, connectSandboxV2, authenticate, async ({ params, body }, { teamId }) => {
    const { timeout = defaultSeconds.connectV2, memory = true } = body ?? {}
    return connect(teamId, params.sandboxID, { seconds: timeout, memory })
  })
}
