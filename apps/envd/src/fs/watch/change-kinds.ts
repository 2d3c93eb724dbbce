import type { ChangeKind } from '../../domain/watch/watch.ts'
import { inotifyMask as mask } from '../../linux/inotify.ts'

/** One event of the kernel may say several things; they are told in this order. */
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

/** All of them. What is no folder is not watched. */
export const watchedBits = order.reduce<number>((bits, [, flags]) => bits | flags, mask.onlyFolder)
