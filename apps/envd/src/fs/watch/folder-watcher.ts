/**
 * Watches folders with one inotify instance for all watchers. Threats: programs in the sandbox control the number
 * of changes, and may rename and remove folders at any time. All counts are bounded. After an inotify overflow
 * every watcher fails, because the lost changes may be of any of them.
 */
import { stat, statfs } from 'node:fs/promises'
import { Fault } from '@atoll/kit/fault'
import { isNetworkMount } from '../../domain/watch/watch.ts'
import type { FolderWatcher, WatchOptions } from '../../domain/watch/watch.ts'
import type { Libc } from '../../linux/libc.ts'
import { toBytes } from '../files/byte-path.ts'
import { fileFault } from '../files/file-fault.ts'
import type { Watcher } from './folder-trees.ts'
import { startInotifyInstance } from './inotify-instance.ts'
import type { InotifyInstance } from './inotify-instance.ts'

export function inotifyFolderWatcher(libc: () => Libc): FolderWatcher {
  let instance: InotifyInstance | undefined
  return {
    async watch(options, listener) {
      await checkWatchable(options).catch((thrown: unknown) => {
        throw fileFault(thrown, options.path)
      })
      const { path, recursive } = options
      const watcher: Watcher = { root: toBytes(path), recursive, listener, folders: new Map() }
      instance ??= startInotifyInstance(libc(), () => (instance = undefined))
      const { close, start } = instance.join(watcher)
      try {
        await start()
      } catch (thrown) {
        close()
        throw thrown
      }
      return { close }
    },
  }
}

async function checkWatchable({ path, allowNetworkMounts }: WatchOptions): Promise<void> {
  if (!(await stat(path)).isDirectory()) refuse(`'${path}' is not a directory`)
  if (!allowNetworkMounts && isNetworkMount((await statfs(path)).type >>> 0)) {
    refuse(
      `'${path}' is on a network mount, which hides remote changes. Set allowNetworkMounts to watch it.`,
    )
  }
}

function refuse(message: string): never {
  throw new Fault('invalid', 'not_watchable', message)
}
