import type { FastifyInstance } from 'fastify'
import type { Authenticate } from '../app/teams/auth.ts'
import { createBuildDockerfile } from '../app/builds/build-dockerfile.ts'
import { createBuildHome } from '../app/builds/build-home.ts'
import { createBuilder } from '../app/builds/builder.ts'
import type { Builder } from '../app/builds/builder.ts'
import { createBuildFileTransfer } from '../app/builds/build-files.ts'
import { createBuildProgress } from '../app/builds/build-progress.ts'
import { collectBuilds } from '../app/builds/collect-builds.ts'
import { createFindOrigin } from '../app/builds/find-origin.ts'
import { forgetBuildLogs } from '../app/builds/forget-build-logs.ts'
import { startLoop } from '../app/loop.ts'
import type { Loop } from '../app/loop.ts'
import { idOf } from '../app/nodes/fleet.ts'
import { isLarge } from '../app/nodes/pace.ts'
import { startVisits } from '../app/nodes/visits.ts'
import { reportOnce } from '../app/report-once.ts'
import { createRequestBuild } from '../app/builds/request-build.ts'
import type { SelectTeam } from '../app/teams/select-team.ts'
import { settleBuilds } from '../app/builds/settle-builds.ts'
import { createStartBuild } from '../app/builds/start-build.ts'
import { sweepTemplates } from '../app/builds/sweep-templates.ts'
import type { Templates } from '../app/templates/templates.ts'
import { addUploadRoute } from '../http/builds/build-files.ts'
import { addBuildProgressRoutes } from '../http/builds/build-progress.ts'
import { addDockerfileRoutes } from '../http/builds/dockerfile-builds.ts'
import { addBuildRoutes } from '../http/builds/template-builds.ts'
import { baseResources } from '../config.ts'
import { atMost } from './at-most.ts'
import type { CatalogueParts } from './catalogue.ts'
import type { Core } from './core.ts'

/** Template builds. */
export interface Builds {
  addRoutes(server: FastifyInstance, routes: BuildRouteParts): void
  /** Call after deleting a template: its builds may be running, and the node may have its files. */
  onTemplateDeleted(): void
  /** Aborts running builds. */
  close(): Promise<void>
}

interface BuildRouteParts {
  readonly authenticate: Authenticate
  readonly selectTeam: SelectTeam
  readonly templates: Templates
  /** Maximum size of one file archive. */
  readonly limitBytes: number
}

const settleLimitMs = 5_000

export function startBuilds(
  core: Core,
  { findOrInstall, catalogue }: Pick<CatalogueParts, 'findOrInstall' | 'catalogue'>,
): Builds {
  const { stores, clock, log, processId, tokenSeed, limitsOf, checkKept } = core
  const { builds, buildLogs: logs, templates, teams, leases } = stores
  const checkNode = () => core.placing.check()
  const homeOf = createBuildHome({ builds, fleet: core.fleet, placing: core.placing })
  const onEnded = () => sweeping.nudge()
  const builder = createBuilder({
    ...{ builds, logs, templates, findOrInstall, catalogue, homeOf, checkKept },
    ...{ clock, processId, log, onEnded },
  })
  const sweeping = startSweeping(core, builder)
  const settler = startLoop(
    'settle builds',
    () => settleBuilds({ builds, builder, leases, clock, processId, onEnded }),
    log,
  )
  const forgetting = startLoop('forget build logs', () => forgetBuildLogs({ logs, clock }), log)
  const graceMs = core.config.ATOLL_UNUSED_BUILD_HOURS * 3_600_000
  const collecting = startLoop(
    'collect builds',
    () => collectBuilds({ builds, clock, log, graceMs, onCollected: onEnded }),
    log,
  )
  const onStarted = () => settler.nudge()
  const files = createBuildFileTransfer({ templates, homeOf, tokenSeed, clock })
  const request = createRequestBuild({ builds, teams, limitsOf, checkKept, clock })
  const start = createStartBuild({ builds, templates, builder, checkNode, onStarted })
  const base = baseResources(core.config)
  const findOrigin = createFindOrigin({ templates, catalogue, base })
  const build = createBuildDockerfile({ templates, findOrigin, request, start, checkNode })
  const progress = createBuildProgress({ builds, logs, templates })

  return {
    addRoutes(server, { authenticate, selectTeam, templates: listed, limitBytes }) {
      const shared = { authenticate, selectTeam, templates: listed }
      addBuildRoutes(server, { ...shared, request, start, files })
      addDockerfileRoutes(server, { ...shared, build })
      addBuildProgressRoutes(server, { authenticate, progress })
      addUploadRoute(server, { files, limitBytes })
    },
    onTemplateDeleted() {
      settler.nudge()
      onEnded()
    },
    async close() {
      await settler.close()
      await atMost(settleLimitMs, builder.close())
      await Promise.all([collecting.close(), sweeping.close(), forgetting.close()])
    },
  }
}

/** Starts to remove unused templates from each node. */
function startSweeping({ fleet, stores, liveApis, log }: Core, builder: Builder) {
  const { builds, issuedFiles } = stores.background
  const onUnknown = reportOnce((nodeTemplateId) =>
    log.warn(
      { event: 'template.unknown', nodeTemplateId },
      'The node has a built template that the store never had. Atoll leaves it alone; if the store was restored from an older backup, restore a newer one.',
    ),
  )
  const loops = new Set<Loop>()
  const { close } = fleet.forEachRegistered((member) => {
    const pass = (signal: AbortSignal) => {
      const hasObjects = member.facts()?.hasObjects ?? false
      const node = { id: idOf(member), hasObjects, builds: member.builds }
      return sweepTemplates({ builds, issuedFiles, node, builder, onUnknown }, signal)
    }
    const isMine = () => liveApis.isMine(idOf(member))
    const loop = startVisits('sweep templates', pass, { fleet, log, isMine })
    loops.add(loop)
    return {
      async close() {
        loops.delete(loop)
        await loop.close()
      },
    }
  })
  return {
    close,
    nudge() {
      // Visits of all nodes of a large fleet at once would hold up requests. The next visits find the same.
      if (!isLarge(fleet.size())) loops.forEach((loop) => loop.nudge())
    },
  }
}
