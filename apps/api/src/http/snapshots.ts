import { createSnapshot, forkSandbox, listSnapshots } from '@atoll/contracts/snapshots'
import type { FastifyInstance } from 'fastify'
import type { Authenticate } from '../app/teams/auth.ts'
import type { Forked, ForkSandbox } from '../app/snapshots/fork-sandbox.ts'
import type { Snapshots, SnapshotView } from '../app/snapshots/snapshots.ts'
import { toFailure } from './server/errors.ts'
import { addTeamRoute } from './server/route.ts'
import { toView } from './sandboxes/sandbox-view.ts'
import type { TokensOf } from './sandboxes/sandbox-view.ts'

const defaultForkSeconds = 15

interface SnapshotRoutes {
  readonly authenticate: Authenticate
  readonly snapshots: Snapshots
  readonly fork: ForkSandbox
  readonly tokensOf: TokensOf
}

export function addSnapshotRoutes(server: FastifyInstance, routes: SnapshotRoutes): void {
  const { authenticate, snapshots, fork, tokensOf } = routes
  addTeamRoute(server, createSnapshot, authenticate, async ({ params, body }, { teamId }) => ({
    status: 201,
    body: toInfo(await snapshots.create(teamId, params.sandboxID, body.name)),
  }))
  addTeamRoute(server, listSnapshots, authenticate, async ({ query }, { teamId }) => {
    const { sandboxID: sandboxId, name, limit, nextToken } = query
    const page = await snapshots.list({ teamId, sandboxId, name, limit, nextToken })
    return {
      status: 200,
      body: page.snapshots.map(toInfo),
      ...(page.nextToken !== undefined && { headers: { 'X-Next-Token': page.nextToken } }),
    }
  })
  addTeamRoute(server, forkSandbox, authenticate, async ({ params, body, signal }, { teamId }) => {
    const { timeout = defaultForkSeconds, count = 1 } = body ?? {}
    const request = { teamId, id: params.sandboxID, count, timeoutSeconds: timeout }
    const made = await fork(request, signal)
    const toResult = (one: Forked) =>
      'sandbox' in one
        ? { sandbox: toView(one.sandbox, tokensOf) }
        : { error: toFailure(one.error, `the fork of ${params.sandboxID}`).body }
    return { status: 201, body: made.map(toResult) }
  })
}

function toInfo({ snapshotId, names }: SnapshotView) {
  return { snapshotID: snapshotId, names: [...names] }
}
