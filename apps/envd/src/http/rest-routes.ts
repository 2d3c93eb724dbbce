/** HTTP endpoints other than RPCs, by path and method. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { Fault } from '@atoll/kit/fault'
import type { SandboxLog } from '../app/log.ts'
import type { Metrics } from '../app/metrics.ts'
import type { Sandbox } from '../app/sandbox.ts'
import type { CaTrust } from '../app/ca-trust.ts'
import type { MetadataStore } from '../domain/files/metadata-store.ts'
import type { RegularFiles } from '../domain/files/regular-file.ts'
import { globalVariables } from '../domain/sandbox/settings.ts'
import type { Settings } from '../domain/sandbox/settings.ts'
import type { Users } from '../domain/access/user.ts'
import type { ActingUser } from './access/acting-user.ts'
import { sendJson, sendText } from './wire/responses.ts'
import { handleCompose } from './files/compose.ts'
import { handleDownload } from './files/download.ts'
import { openFileContext } from './files/file-context.ts'
import { parseFileQuery } from './files/file-query.ts'
import { handleInit } from './node/init.ts'
import { handleLogs, logsPath } from './node/logs.ts'
import { handlePrepare } from './node/prepare.ts'
import type { PrepareDeps } from './node/prepare.ts'
import { logFileAccess } from './files/log-file-access.ts'
import { handleTrust } from './node/trust.ts'
import { handleUpload } from './files/upload.ts'

export interface RestDeps extends PrepareDeps {
  readonly sandbox: Sandbox
  readonly trust: CaTrust
  readonly users: Users
  readonly files: RegularFiles
  readonly metadata: Pick<MetadataStore, 'replace'>
  readonly metrics: (settings: Settings) => Promise<Metrics>
  readonly log: SandboxLog
}

export interface RestCall {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly path: string
  readonly acting: ActingUser
}

export async function handleRest(deps: RestDeps, call: RestCall): Promise<void> {
  const { request, response, path } = call
  const methods = routes.get(path)
  if (!methods) return sendText(response, 404, '404 page not found')
  const handler = methods[request.method ?? '']
  if (handler) return handler(deps, call)
  const allowed = Object.keys(methods).join(', ')
  response.setHeader('allow', allowed)
  return sendText(response, 405, `Method ${request.method} is not allowed. Use ${allowed}.`)
}

type Handler = (deps: RestDeps, call: RestCall) => Promise<void> | void

const download: Handler = async (deps, call) => {
  const { path = '', username } = parseFileQuery(call.request.url ?? '')
  const { resolve } = await openCall(deps, call, username)
  return handleDownload(call.request, call.response, { files: deps.files, path: resolve(path) })
}

const upload: Handler = async (deps, rest) => {
  const { request, response } = rest
  const { path, username } = parseFileQuery(request.url ?? '')
  const call = await openCall(deps, rest, username)
  return handleUpload(request, response, { ...deps, call, path })
}

const compose: Handler = (deps, rest) =>
  handleCompose(rest.request, rest.response, {
    ...deps,
    openCall: (username) => openCall(deps, rest, username),
  })

const health: Handler = (_deps, { response }) =>
  void response.writeHead(204, { 'cache-control': 'no-store' }).end()

const init: Handler = (deps, { request, response }) => handleInit(request, response, deps)

const logs: Handler = (deps, { request, response }) => handleLogs(request, response, deps)

const prepare: Handler = (deps, { request, response }) => handlePrepare(request, response, deps)

const trust: Handler = (deps, { request, response }) => handleTrust(request, response, deps)

const metrics: Handler = async (deps, { response }) =>
  sendJson(response, await deps.metrics(settingsOf(deps)))

const variables: Handler = (deps, { response }) =>
  sendJson(response, globalVariables(settingsOf(deps), deps.trust.variables()))

const routes: ReadonlyMap<string, Readonly<Record<string, Handler>>> = new Map(
  Object.entries<Record<string, Handler>>({
    '/health': { GET: health },
    '/init': { POST: init },
    '/prepare': { POST: prepare },
    '/trust': { POST: trust },
    [logsPath]: { GET: logs },
    '/files': { GET: download, HEAD: download, POST: upload },
    '/files/compose': { POST: compose },
    '/metrics': { GET: metrics },
    '/envs': { GET: variables },
  }),
)

async function openCall(deps: RestDeps, call: RestCall, username: string | undefined) {
  const { users, log } = deps
  const { request, path, acting } = call
  const opened = await openFileContext({ users, settings: settingsOf(deps), acting }, username)
  return logFileAccess(log, `${request.method} ${path}`, opened)
}

function settingsOf({ sandbox }: RestDeps): Settings {
  const settings = sandbox.settings()
  if (settings) return settings
  throw new Fault('unavailable', 'not_ready', 'The sandbox is not ready yet. Retry in a moment.')
}
