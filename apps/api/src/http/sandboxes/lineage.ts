import { getSandboxLineage } from '@atoll/contracts/sandboxes/lineage'
import type { LineageSandbox, LineageSnapshot } from '@atoll/contracts/sandboxes/lineage'
import type { SandboxParent } from '@atoll/contracts/sandboxes/views'
import type { FastifyInstance } from 'fastify'
import type { z } from 'zod'
import type { ReadLineage } from '../../app/inspections/lineage.ts'
import type { Authenticate } from '../../app/teams/auth.ts'
import type { Relative } from '../../domain/sandboxes/lineage.ts'
import { shownState } from '../../domain/sandboxes/sandbox.ts'
import type { Sandbox } from '../../domain/sandboxes/sandbox.ts'
import { snapshotIdOf } from '../../domain/snapshot.ts'
import type { ListedSnapshot } from '../../domain/snapshot.ts'
import { nameOf } from '../../domain/template.ts'
import { addTeamRoute } from '../server/route.ts'

export function addLineageRoutes(
  server: FastifyInstance,
  routes: { readonly authenticate: Authenticate; readonly readLineage: ReadLineage },
): void {
  const { authenticate, readLineage } = routes
  addTeamRoute(server, getSandboxLineage, authenticate, async ({ params }, { teamId }) => {
    const lineage = await readLineage({ teamId, sandboxId: params.sandboxID })
    return {
      status: 200,
      body: {
        sandboxes: lineage.sandboxes.map(toRelativeView),
        snapshots: lineage.snapshots.map(toSnapshotView),
        isComplete: lineage.isComplete,
      },
    }
  })
}

function toRelativeView(relative: Relative): z.infer<typeof LineageSandbox> {
  const { alias, parent, endedAt, endReason } = relative
  return {
    sandboxID: relative.id,
    templateID: relative.templateId,
    buildID: relative.buildId,
    ...(alias !== undefined && { alias }),
    state: shownState(relative) ?? 'ended',
    ...(parent && { parent: toParentView(parent) }),
    createdAt: relative.createdAt.toISOString(),
    ...(endedAt && { endedAt: endedAt.toISOString() }),
    ...(endReason !== undefined && { endReason }),
  }
}

export function toParentView({
  id,
  kind,
}: NonNullable<Sandbox['parent']>): z.infer<typeof SandboxParent> {
  return { sandboxID: id, kind }
}

function toSnapshotView(snapshot: ListedSnapshot): z.infer<typeof LineageSnapshot> {
  return {
    snapshotID: snapshotIdOf(snapshot),
    names: snapshot.names.map(nameOf),
    sandboxID: snapshot.sandboxId,
    createdAt: snapshot.createdAt.toISOString(),
  }
}
