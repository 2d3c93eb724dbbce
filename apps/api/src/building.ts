import { setTimeout as sleep } from 'node:timers/promises'
import type { Clock } from '@atoll/kit/clock'
import type { Logger } from '@atoll/kit/log'
import type { Transport } from '@connectrpc/connect'
import type { FastifyInstance } from 'fastify'
import type { Authenticate } from './app/teams/auth.ts'
import { createBuildDockerfile } from './app/builds/build-dockerfile.ts'
import { createBuilder } from './app/builds/builder.ts'
import { createBuildFileTransfer } from './app/builds/build-files.ts'
import { createBuildProgress } from './app/builds/build-progress.ts'
import { forgetBuildLogs } from './app/builds/forget-build-logs.ts'
import type { LimitsOf } from './app/teams/limits.ts'
import { startLoop } from './app/loop.ts'
import { createRequestBuild } from './app/builds/request-build.ts'
import type { SelectTeam } from './app/teams/select-team.ts'
import { settleBuilds } from './app/builds/settle-builds.ts'
import { createStartBuild } from './app/builds/start-build.ts'
import { sweepTemplates } from './app/builds/sweep-templates.ts'
import type { Templates } from './app/templates/templates.ts'
import type { Stores } from './db/stores.ts'
import { addUploadRoute } from './http/builds/build-files.ts'
import { addBuildProgressRoutes } from './http/builds/build-progress.ts'
import { addDockerfileRoutes } from './http/builds/dockerfile-builds.ts'
import { addBuildRoutes } from './http/builds/template-builds.ts'
import { connectBuilds } from './nodes/connect-builds.ts'

/** Part of the composition root for template builds. */
export interface Building {
  addRoutes(server: FastifyInstance, routes: BuildingRoutes): void
  /** Call after deleting a template: its builds may be running, and the node may have its files. */
  onTemplateDeleted(): void
  /** Aborts running builds. */
  close(): Promise<void>
}

interface BuildingParts {
  readonly stores: Stores
  readonly node: Transport
  readonly clock: Clock
  readonly log: Logger
  readonly processId: string
  readonly tokenSeed: string
  readonly limitsOf: LimitsOf
  readonly checkNode: () => Promise<void>
}

interface BuildingRoutes {
  readonly authenticate: Authenticate
  readonly selectTeam: SelectTeam
  readonly templates: Templates
  /** Maximum size of one file archive. */
  readonly limitBytes: number
}

const settleLimitMs = 5_000

export function startBuilding(parts: BuildingParts): Building {
  const { clock, log, processId, tokenSeed, limitsOf, checkNode } = parts
  const { builds, buildLogs: logs, templates, teams, leases } = parts.stores
  const node = connectBuilds(parts.node)
  const onEnded = () => sweeper.nudge()
  const builder = createBuilder({
    ...{ builds, logs, templates, node, clock, processId, log, onEnded },
  })
  const sweeper = startLoop(
    'sweep templates',
    (signal) => sweepTemplates({ builds, node, builder }, signal),
    log,
  )
  const settler = startLoop(
    'settle builds',
    () => settleBuilds({ builds, builder, leases, clock, processId, onEnded }),
    log,
  )
  const forgetting = startLoop('forget build logs', () => forgetBuildLogs({ logs, clock }), log)
  const onStarted = () => settler.nudge()
  const files = createBuildFileTransfer({ templates, node, tokenSeed, clock })
  const request = createRequestBuild({ builds, teams, limitsOf, clock })
  const start = createStartBuild({ builds, templates, builder, checkNode, onStarted })
  const build = createBuildDockerfile({ templates, request, start, checkNode })
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
      sweeper.nudge()
    },
    async close() {
      await settler.close()
      await Promise.race([builder.close(), sleep(settleLimitMs, undefined, { ref: false })])
      await Promise.all([sweeper.close(), forgetting.close()])
    },
  }
}
