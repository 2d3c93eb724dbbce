import type { BytePath } from '../files/byte-path.ts'
import type { WatchedFolders } from './watched-folders.ts'

/** Matches the two halves of a folder's rename, which inotify reports as separate events with one cookie. */
export interface FolderMoves<Owner> {
  movedFrom(cookie: number, owner: Owner, from: BytePath): void
  /** Returns the old path of a folder that arrived, if it was moved within the tree of `owner`. */
  takeSource(cookie: number, owner: Owner): BytePath | undefined
  /** Both halves of a rename are adjacent events. After any other event, the folder has left the tree. */
  dropStale(cookie: number): void
}

export function createFolderMoves<Owner>(
  folders: Pick<WatchedFolders<Owner>, 'remove'>,
): FolderMoves<Owner> {
  let pending: PendingMove<Owner>[] = []
  return {
    movedFrom(cookie, owner, from) {
      pending.push({ cookie, owner, from })
    },
    takeSource(cookie, owner) {
      const move = pending.find((each) => each.cookie === cookie && each.owner === owner)
      pending = pending.filter((each) => each !== move)
      return move?.from
    },
    dropStale(cookie) {
      if (pending.length === 0) return
      for (const move of pending) {
        if (move.cookie !== cookie) folders.remove(move.owner, move.from)
      }
      pending = pending.filter((move) => move.cookie === cookie)
    },
  }
}

interface PendingMove<Owner> {
  readonly cookie: number
  readonly owner: Owner
  readonly from: BytePath
}
