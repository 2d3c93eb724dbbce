/** Connect handlers of the Filesystem service. */
import type {
  CreateWatcherRequest,
  Filesystem,
  WatchDirRequest,
} from '@atoll/contracts/gen/filesystem/filesystem_pb'
import { Code, ConnectError } from '@connectrpc/connect'
import type { HandlerContext, ServiceImpl } from '@connectrpc/connect'
import type { Watchers, WatchRequest } from '../../app/watchers.ts'
import type { Sandbox } from '../../app/sandbox.ts'
import type { Entries } from '../../domain/files/entry.ts'
import type { Log } from '../../domain/sandbox/log.ts'
import { resolvePath } from '../../domain/files/path.ts'
import type { Users } from '../../domain/access/user.ts'
import { actingUserKey, resolveUser } from '../access/rpc-user.ts'
import { entryView } from './entry-info.ts'
import type { FileContext } from './file-context.ts'
import { keepaliveIntervalMs } from '../wire/streams.ts'
import { logFileAccess } from './log-file-access.ts'
import { streamChanges, toEvents } from '../watch/watch-events.ts'

export interface FilesystemServiceDeps {
  readonly entries: Entries
  readonly watchers: Watchers
  readonly sandbox: Sandbox
  readonly users: Users
  readonly log: Log
}

export function filesystemService(deps: FilesystemServiceDeps): ServiceImpl<typeof Filesystem> {
  const { entries, watchers } = deps
  return {
    async stat(request, context) {
      const { resolve } = await openContext(deps, context)
      return { entry: entryView(context)(await entries.describe(resolve(request.path))) }
    },
    async makeDir(request, context) {
      const { user, resolve } = await openContext(deps, context)
      const path = resolve(request.path)
      if (!(await entries.makeFolder(path, user))) {
        throw new ConnectError(`Directory '${path}' already exists`, Code.AlreadyExists)
      }
      return { entry: entryView(context)(await entries.describe(path)) }
    },
    async move(request, context) {
      const { user, resolve } = await openContext(deps, context)
      const destination = resolve(request.destination)
      await entries.move(resolve(request.source), destination, user)
      return { entry: entryView(context)(await entries.describe(destination)) }
    },
    async listDir({ path, depth }, context) {
      const { resolve } = await openContext(deps, context)
      const found = await entries.list(resolve(path), { depth, signal: context.signal })
      return { entries: found.map(entryView(context)) }
    },
    async remove(request, context) {
      const { resolve } = await openContext(deps, context)
      await entries.remove(resolve(request.path), context.signal)
      return {}
    },
    async *watchDir(request, context) {
      const { signal } = context
      signal.throwIfAborted()
      const watch = await watchers.open(toRequest(request, await openContext(deps, context)))
      const interval = context.requestHeader.get('keepalive-ping-interval')
      yield* streamChanges(watch, entries, { signal, keepaliveMs: keepaliveIntervalMs(interval) })
    },
    async createWatcher(request, context) {
      return {
        watcherId: await watchers.create(toRequest(request, await openContext(deps, context))),
      }
    },
    async getWatcherEvents({ watcherId }) {
      const { request, changes } = watchers.take(watcherId)
      return { events: await toEvents(changes, request, entries) }
    },
    removeWatcher({ watcherId }) {
      watchers.remove(watcherId)
      return {}
    },
  }
}

async function openContext(
  deps: FilesystemServiceDeps,
  context: HandlerContext,
): Promise<FileContext> {
  const settings = deps.sandbox.settings()
  if (!settings)
    throw new ConnectError('The sandbox is not ready yet. Retry in a moment.', Code.Unavailable)
  const user = await resolveUser(context.values.get(actingUserKey), deps.users, settings)
  const from = { home: user.home, workdir: settings.defaultWorkdir }
  const call = { user, resolve: (path: string) => resolvePath(path, from) }
  return logFileAccess(deps.log, context.method.name, call)
}

function toRequest(message: WatchDirRequest | CreateWatcherRequest, by: FileContext): WatchRequest {
  const { recursive, includeEntry, allowNetworkMounts } = message
  return { path: by.resolve(message.path), recursive, includeEntry, allowNetworkMounts }
}
