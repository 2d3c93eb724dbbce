/**
 * Which folders are watched, for whom, and under which name. Several watchers may watch the same folder: the kernel
 * knows it once, by one number.
 */
import { Fault } from '@atoll/kit/fault'
import type { Inotify } from '../../linux/inotify.ts'
import { toPath } from '../files/byte-path.ts'
import type { BytePath } from '../files/byte-path.ts'
import { watchedBits } from './change-kinds.ts'

export interface Place<Owner> {
  readonly owner: Owner
  readonly watch: number
  /** Below the folder that was asked for; empty for that folder itself. */
  relative: BytePath
  /** What was told of it by looking, and may be told again by the kernel. */
  readonly told: Set<BytePath>
  /** How much of what was in it when it was added has been seen; a folder may be moved away while it is looked at. */
  seen: 'nothing' | 'part' | 'all'
}

export interface PlaceOwner<Owner> {
  readonly root: BytePath
  readonly places: Map<BytePath, Place<Owner>>
}

export interface WatchedPlaces<Owner> {
  /** Undefined when it is gone. */
  add(owner: Owner, relative: BytePath): { place: Place<Owner>; isNew: boolean } | undefined
  of(watch: number): readonly Place<Owner>[]
  /** The kernel has let go of it. */
  lost(watch: number): void
  /** Also all below. */
  remove(owner: Owner, relative: BytePath): void
  /** Gives what was renamed; nothing when it was not watched. */
  rename(owner: Owner, from: BytePath, to: BytePath): readonly Place<Owner>[]
}

export function watchedPlaces<Owner extends PlaceOwner<Owner>>(
  inotify: Inotify,
): WatchedPlaces<Owner> {
  const byWatch = new Map<number, Set<Place<Owner>>>()
  let count = 0

  return {
    add(owner, relative) {
      if (count >= placeLimit) tooMany()
      const path = relative === '' ? owner.root : `${owner.root}/${relative}`
      const follow = relative === '' ? 0 : dontFollow
      const watch = inotify.add(toPath(path), watchedBits | follow)
      if (watch === undefined) return undefined
      const former = owner.places.get(relative)
      if (former?.watch === watch) return { place: former, isNew: false }
      if (former) forget(former)
      const place: Place<Owner> = { owner, watch, relative, told: new Set(), seen: 'nothing' }
      owner.places.set(relative, place)
      const sharing = byWatch.get(watch) ?? new Set()
      byWatch.set(watch, sharing.add(place))
      count += 1
      return { place, isNew: true }
    },
    of: (watch) => [...(byWatch.get(watch) ?? [])],
    lost(watch) {
      const places = byWatch.get(watch)
      byWatch.delete(watch)
      for (const place of places ?? []) forget(place)
    },
    remove(owner, relative) {
      for (const place of below(owner, relative)) forget(place)
    },
    rename(owner, from, to) {
      const renamed = below(owner, from)
      for (const place of renamed) {
        owner.places.delete(place.relative)
        place.relative = to + place.relative.slice(from.length)
        const former = owner.places.get(place.relative)
        if (former) forget(former)
        owner.places.set(place.relative, place)
      }
      return renamed
    },
  }

  function below(owner: Owner, relative: BytePath): Place<Owner>[] {
    if (relative === '') return [...owner.places.values()]
    return [...owner.places.values()].filter(
      (place) => place.relative === relative || place.relative.startsWith(`${relative}/`),
    )
  }

  function forget(place: Place<Owner>): void {
    const { owner, relative, watch } = place
    if (owner.places.get(relative) === place) owner.places.delete(relative)
    const sharing = byWatch.get(watch)
    count -= 1
    if (!sharing?.delete(place) || sharing.size > 0) return
    byWatch.delete(watch)
    inotify.remove(watch)
  }
}

/** A folder that was replaced by a link meanwhile must not lead us out of the tree. */
const dontFollow = 0x200_0000

const placeLimit = 50_000

function tooMany(): never {
  const text = `More than ${placeLimit} folders would be watched: watch fewer, or without recursion`
  throw new Fault('internal', 'too_many_watches', text)
}
