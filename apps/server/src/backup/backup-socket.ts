/**
 * Lets `atoll backup` capture the data directory of this server: by HTTP on a socket that only root can open. The
 * capture lasts as long as the connection.
 */
import { chmod, mkdir, rm } from 'node:fs/promises'
import { createServer, request as sendRequest } from 'node:http'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { once } from 'node:events'
import { dirname } from 'node:path'
import { Fault } from '@atoll/kit/fault'
import type { Logger } from '@atoll/kit/log'
import { z } from 'zod'
import { Captured, captureInstallation } from './capture.ts'
import type { CaptureParts } from './capture.ts'

export interface BackupSocket {
  /** Ends captures in progress. */
  close(): Promise<void>
}

export async function startBackupSocket(
  path: string,
  parts: CaptureParts,
  log: Logger,
): Promise<BackupSocket> {
  let current: Promise<void> | undefined

  async function serve(response: ServerResponse): Promise<void> {
    const ended = once(response, 'close')
    try {
      await using capture = await captureInstallation(parts)
      const { sandboxes, snapshots, templates } = capture.captured
      log.info({ event: 'backup.start', sandboxes, snapshots, templates })
      response.write(`${JSON.stringify({ captured: capture.captured })}\n`)
      await ended
      log.info({ event: 'backup.end' })
    } catch (error) {
      const { message, reason } = Fault.from(error)
      log.error({ err: error, event: 'backup.failed' }, 'the data directory could not be captured')
      response.end(`${JSON.stringify({ failed: { message, reason } })}\n`)
    }
  }

  const server = createServer((request: IncomingMessage, response) => {
    const isKnown = request.method === 'POST' && request.url === '/backup'
    if (!isKnown || current) {
      response.writeHead(isKnown ? 409 : 404).end()
      return
    }
    response.writeHead(200, { 'content-type': 'application/x-ndjson' })
    current = serve(response).finally(() => (current = undefined))
  })
  await mkdir(dirname(path), { recursive: true })
  // A server that was killed leaves the file.
  await rm(path, { force: true })
  server.listen(path)
  await once(server, 'listening')
  await chmod(path, 0o600)
  return {
    async close() {
      server.close()
      server.closeAllConnections()
      await current
    },
  }
}

const Line = z.union([
  z.object({ captured: Captured }),
  z.object({ failed: z.object({ message: z.string(), reason: z.string() }) }),
])

/** Captures through the server. `lost` aborts if the server ends the capture. */
export async function captureThroughServer(
  path: string,
  dataDir: string,
): Promise<{ readonly captured: Captured; readonly lost: AbortSignal } & Disposable> {
  const request = sendRequest({ socketPath: path, path: '/backup', method: 'POST' }).end()
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    request.once('response', resolve)
    request.once('error', (cause) => reject(noSocket(dataDir, cause)))
  })
  const lost = new AbortController()
  const end = () => lost.abort(serverEnded(dataDir))
  request.on('error', end)
  response.on('error', end)
  try {
    if (response.statusCode === 409) throw underWay(dataDir)
    const line = Line.parse(JSON.parse(await readLine(response)))
    if ('failed' in line) {
      throw new Fault('conflict', 'backup_failed', `The server refused: ${line.failed.message}`)
    }
    response.once('close', end).resume()
    return { captured: line.captured, lost: lost.signal, [Symbol.dispose]: () => request.destroy() }
  } catch (error) {
    request.destroy()
    throw error instanceof Fault ? error : serverEnded(dataDir, error)
  }
}

async function readLine(response: IncomingMessage): Promise<string> {
  let text = ''
  response.setEncoding('utf8')
  while (!text.includes('\n')) {
    const piece: string | null = response.read()
    if (piece !== null) text += piece
    else if (response.readableEnded || response.destroyed) throw new Error('no answer')
    else await Promise.race([once(response, 'readable'), once(response, 'close')])
  }
  return text
}
function noSocket(dataDir: string, cause: unknown): Fault {
  return new Fault(
    'conflict',
    'backup_no_socket',
    `A server uses ${dataDir} but does not take backups: it is starting, or it is of an older release. Wait until it is up, or stop it and try again`,
    { cause },
  )
}

function underWay(dataDir: string): Fault {
  return new Fault(
    'conflict',
    'backup_under_way',
    `Another backup of ${dataDir} is under way. Wait for its end`,
  )
}

function serverEnded(dataDir: string, cause?: unknown): Fault {
  return new Fault(
    'conflict',
    'backup_server_ended',
    `The server of ${dataDir} ended during the backup, so the backup was given up. Try again`,
    { cause },
  )
}
