import type { ChangeKind } from '../../domain/watch/watch.ts'
import { inotifyMask as mask } from '../../linux/inotify.ts'

/** One inotify event may stand for several changes, reported in this order. */
export function changeKinds(bits: number): ChangeKind[] {
  return order.filter(([, flags]) => bits & flags).map(([kind]) => kind)
}

const order: readonly (readonly [ChangeKind, number])[] = [
  ['create', mask.create | mask.movedTo],
  ['rename', mask.movedFrom | mask.moveSelf],
  ['chmod', mask.attributes],
  ['write', mask.modify],
  ['remove', mask.delete | mask.deleteSelf],
]

/** inotify mask of all changes, for folders only. */
export const watchedBits = order.reduce<number>((bits, [, flags]) => bits | flags, mask.onlyFolder)
