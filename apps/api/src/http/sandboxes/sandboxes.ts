import { createSandbox, createSandboxV2 } from '@atoll/contracts/sandboxes/create'
import type { NewSandboxV2 } from '@atoll/contracts/sandboxes/create'
import {
  getSandbox,
  killSandbox,
  listSandboxes,
  listSandboxesV2,
  refreshSandbox,
  setSandboxTimeout,
} from '@atoll/contracts/sandboxes/manage'
import type { FastifyInstance } from 'fastify'
import type { Authenticate } from '../../app/teams/auth.ts'
import type { CreateRequest, CreateSandbox } from '../../app/sandboxes/create-sandbox.ts'
import type { Sandboxes } from '../../app/sandboxes/sandboxes.ts'
import { toLifecycle } from '../../domain/sandboxes/lifecycle.ts'
import { toSearchWords } from '../../domain/sandboxes/sandbox-sort.ts'
import { parseMetadataQuery } from './metadata-query.ts'
import { addTeamRoute } from '../server/route.ts'
import { toDetail, toListed, toView } from './sandbox-view.ts'
import type { TokensOf } from './sandbox-view.ts'
import { toNetwork } from '../network.ts'
import { isFilled, refuseFields } from '../server/unsupported.ts'

const defaultSeconds = { create: 15, createV2: 300 }

interface SandboxRoutes {
  readonly authenticate: Authenticate
  readonly sandboxes: Sandboxes
  readonly create: CreateSandbox
  readonly tokensOf: TokensOf
}

export function addSandboxRoutes(server: FastifyInstance, routes: SandboxRoutes): void {
  addCreateRoutes(server, routes)
  addListRoutes(server, routes)
  const { authenticate, sandboxes, tokensOf } = routes
  addTeamRoute(server, getSandbox, authenticate, async ({ params }, { teamId }) => {
    const sandbox = await sandboxes.get(teamId, params.sandboxID)
    return { status: 200, body: toDetail(sandbox, tokensOf) }
  })
  addTeamRoute(server, killSandbox, authenticate, async ({ params }, { teamId }) => {
    await sandboxes.kill(teamId, params.sandboxID)
    return { status: 204 }
  })
  addTeamRoute(server, setSandboxTimeout, authenticate, async ({ params, body }, { teamId }) => {
    await sandboxes.setTimeout(teamId, params.sandboxID, body.timeout)
    return { status: 204 }
  })
  addTeamRoute(server, refreshSandbox, authenticate, async ({ params, body }, { teamId }) => {
    await sandboxes.refresh(teamId, params.sandboxID, body?.duration ?? 0)
    return { status: 204 }
  })
}

function addCreateRoutes(server: FastifyInstance, routes: SandboxRoutes): void {
  const { authenticate, tokensOf } = routes
  const create = async (request: CreateRequest, signal: AbortSignal) => {
    const sandbox = await routes.create(request, signal)
    return { status: 201, body: toView(sandbox, tokensOf) }
  }
  addTeamRoute(server, createSandbox, authenticate, async ({ body, signal }, { teamId }) => {
    const { timeout = defaultSeconds.create, secure = false } = body
    return create({ ...toRequest(body, secure), teamId, timeoutSeconds: timeout }, signal)
  })
  addTeamRoute(server, createSandboxV2, authenticate, async ({ body, signal }, { teamId }) => {
    const { timeout = defaultSeconds.createV2 } = body
    return create({ ...toRequest(body, true), teamId, timeoutSeconds: timeout }, signal)
  })
}

function toRequest(body: NewSandboxV2, secure: boolean) {
  const network = toNetwork(body, secure)
  refuseFields({
    'iam.tokens': isFilled(body.iam?.tokens),
    volumeMounts: isFilled(body.volumeMounts),
  })
  return {
    secure,
    network,
    templateReference: body.templateID,
    allowInternetAccess: body.allow_internet_access,
    lifecycle: toLifecycle({ ...body, autoResume: body.autoResume?.enabled }),
    metadata: body.metadata,
    envVars: body.envVars ?? {},
  }
}

function addListRoutes(server: FastifyInstance, routes: SandboxRoutes): void {
  const { authenticate, sandboxes } = routes
  addTeamRoute(server, listSandboxes, authenticate, async ({ query }, { teamId }) => {
    const metadata = parseMetadataQuery(query.metadata)
    const all = await sandboxes.listAll({ teamId, metadata })
    return { status: 200, body: all.map(toListed) }
  })
  addTeamRoute(server, listSandboxesV2, authenticate, async ({ query }, { teamId }) => {
    const { metadata, state, startedAfter, ...rest } = query
    const page = await sandboxes.list({
      teamId,
      metadata: parseMetadataQuery(metadata),
      states: state,
      startedAfter: startedAfter === undefined ? undefined : new Date(startedAfter),
      template: rest.template,
      words: rest.search === undefined ? undefined : toSearchWords(rest.search),
      sort: rest.sort,
      order: rest.order,
      limit: rest.limit,
      nextToken: rest.nextToken,
    })
    return {
      status: 200,
      body: page.sandboxes.map(toListed),
      headers: {
        'X-Total-Matches': String(page.total),
        ...(page.nextToken !== undefined && { 'X-Next-Token': page.nextToken }),
        ...(page.totalRunning !== undefined && { 'X-Total-Running': String(page.totalRunning) }),
      },
    }
  })
}
