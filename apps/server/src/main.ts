/** `atoll up`: runs the server until a signal stops it. */
import { constants } from 'node:os'
import { join } from 'node:path'
import { Fault } from '@atoll/kit/fault'
import { createLogger } from '@atoll/kit/log'
import type { Logger } from '@atoll/kit/log'
import { renderBanner, renderStopMessage } from './banner.ts'
import type { BannerFacts } from './banner.ts'
import { loadServerConfig } from './config.ts'
import type { ServerConfig } from './config.ts'
import { claimDataDir, unusable } from './data-dir.ts'
import { openLogFile } from './log-file.ts'
import { stdoutLines } from './log-stdout.ts'
import { createProgressView } from './progress.ts'
import { startServer } from './server.ts'
import type { RunningServer, ServerParts } from './server.ts'

/** Time after which the process exits even if a handle is still open. */
const exitAfterMs = 500

/** Resolves when a signal has stopped the server. Throws a fault when the server cannot start. */
export async function runServer(
  env: Record<string, string | undefined>,
  parts: Pick<ServerParts, 'startNode' | 'stepLimitMs'> = {},
): Promise<void> {
  const config = loadServerConfig(env)
  const { ATOLL_LOG, ATOLL_DATA_DIR } = config.server
  // When logs go to standard output, messages for people go to standard error.
  const people = ATOLL_LOG === 'stdout' ? process.stderr : process.stdout
  await claimDataDir(ATOLL_DATA_DIR)
  const log = openLog(config)
  const progress = createProgressView(people)
  const signals = watchSignals()
  exitOnUnexpectedError(log, ATOLL_LOG === 'stdout' ? undefined : logPath(ATOLL_DATA_DIR))

  const shown = { ...parts, log, progress: progress.report }
  const server = await startServer(config, shown)
    .finally(() => progress.clear())
    .catch((error: unknown) => {
      // A failed start may leave handles open; exit after the caller has reported the error.
      setTimeout(() => process.exit(1), exitAfterMs).unref()
      throw error
    })
  signals.endGracefully()
  const facts = bannerFacts(config, server)
  people.write(`${renderBanner(facts)}\n`)
  await signals.first
  const { leftRunning } = await server.close()
  people.write(`\n${renderStopMessage(leftRunning, facts)}`)
  setTimeout(() => process.exit(0), exitAfterMs).unref()
}

function bannerFacts({ server: settings }: ServerConfig, server: RunningServer): BannerFacts {
  return {
    ...server,
    dataDir: settings.ATOLL_DATA_DIR,
    isDefaultDataDir: settings.ATOLL_DATA_DIR === '/var/lib/atoll',
    domain: settings.ATOLL_DOMAIN,
  }
}

export function openLog({ server }: ServerConfig): Logger {
  const { ATOLL_LOG, ATOLL_LOG_LEVEL, ATOLL_DATA_DIR } = server
  if (ATOLL_LOG === 'stdout') return createLogger(ATOLL_LOG_LEVEL, stdoutLines())
  try {
    return createLogger(ATOLL_LOG_LEVEL, openLogFile(logPath(ATOLL_DATA_DIR)))
  } catch (error) {
    throw unusable(ATOLL_DATA_DIR, error)
  }
}

export function logPath(dataDir: string): string {
  return join(dataDir, 'logs', 'server.log')
}

/**
 * Handles signals. During the start a signal ends the process at once: each step of the start is safe to kill.
 * Afterwards the first signal stops the server gracefully, the second ends it at once.
 */
export function watchSignals(): { readonly first: Promise<void>; endGracefully(): void } {
  const first = Promise.withResolvers<void>()
  let isGraceful = false
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.on(signal, () => {
      if (!isGraceful) process.exit(128 + constants.signals[signal])
      isGraceful = false
      first.resolve()
    })
  }
  return {
    first: first.promise,
    endGracefully() {
      isGraceful = true
    },
  }
}

/**
 * Logs an unexpected error and exits, since the state is unknown. Sandboxes keep running; a supervisor restarts the
 * server.
 */
export function exitOnUnexpectedError(log: Logger, path: string | undefined): void {
  const die = (error: unknown) => {
    log.fatal({ err: error, event: 'server.crash' }, 'unexpected error')
    process.stderr.write(
      `atoll: ended by an unexpected error: ${String(error)}\n${path ? `See ${path}\n` : ''}`,
    )
    process.exit(1)
  }
  process.on('uncaughtException', die)
  process.on('unhandledRejection', die)
}

if (import.meta.main) {
  try {
    await runServer(process.env)
  } catch (error) {
    process.stderr.write(`atoll: ${error instanceof Fault ? error.message : String(error)}\n`)
    process.exit(1)
  }
}
