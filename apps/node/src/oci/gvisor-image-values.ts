import { isEmpty, kinds, skipReference, skipTypeSpec } from './gvisor-image-kinds.ts'
import { UnknownImage } from './gvisor-image.ts'
import type { ImageReader } from './gvisor-image.ts'

/** Callbacks for the epoll sets in an image. */
export interface EpollVisitor {
  /** Reports a current or former member of an epoll set, with the file offsets of its event mask. */
  interest(objectId: number, maskOffsets: readonly number[]): void
  /** Reports an interest that an epoll set still contains. */
  member(objectId: number): void
}

/** Numbers of the types that epoll sets consist of; -1 until the graph has declared them. */
export interface EpollTypes {
  interest: number
  key: number
  /** Index of the event mask among the fields of an interest. */
  maskField: number
  /** Reads the declaration of the next type. */
  register(): void
}

export function createEpollTypes(image: ImageReader): EpollTypes {
  let count = 0
  return {
    interest: -1,
    key: -1,
    maskField: -1,
    register() {
      count++
      const name = image.text()
      if (name === 'pkg/sentry/vfs.epollInterestKey') this.key = count
      if (name === 'pkg/sentry/vfs.epollInterest') this.interest = count
      const fields = image.count()
      for (let field = 0; field < fields; field++) {
        if (count !== this.interest) image.skip(image.count())
        else if (image.text() === 'mask') this.maskField = field
      }
    },
  }
}

/** Returns a function that walks the value of one object. */
export function createValueWalker(
  image: ImageReader,
  types: EpollTypes,
  visitor: EpollVisitor,
): (objectId: number) => void {
  let objectId = 0
  let depth = 0

  /** Returns the type of a structure, the target of a reference, or 0 for other values. */
  function value(kind: number): number {
    switch (kind) {
      case kinds.bool:
      case kinds.int:
      case kinds.uint:
      case kinds.float32:
      case kinds.float64:
        image.uint()
        return 0
      case kinds.complex64:
      case kinds.complex128:
        image.uint()
        image.uint()
        return 0
      case kinds.nil:
      case kinds.noFields:
        return 0
      case kinds.reference:
        return skipReference(image)
      case kinds.string:
        image.skip(image.count())
        return 0
      case kinds.slice:
        image.uint()
        image.uint()
        return skipReference(image)
      default:
        return nested(kind)
    }
  }

  function nested(kind: number): number {
    if (++depth > maxDepth) throw new UnknownImage('values are nested too deeply')
    const result = kind === kinds.structure ? structure() : compound(kind)
    depth--
    return result
  }

  function compound(kind: number): number {
    if (kind === kinds.array) array()
    else if (kind === kinds.map) map()
    else if (kind === kinds.fields) {
      for (let left = image.count(); left > 0; left--) value(image.uint())
    } else if (kind === kinds.interface) {
      skipTypeSpec(image)
      value(image.uint())
    } else throw new UnknownImage(`a value is of kind ${kind}`)
    return 0
  }

  /** Skips an array. Only the first element carries the kind, which applies to all. */
  function array(): void {
    const count = image.count()
    if (count === 0) return
    const kind = image.uint()
    if (isEmpty(kind)) return
    for (let left = count; left > 0; left--) value(kind)
  }

  function map(): void {
    const count = image.count()
    if (count === 0) return
    const keyKind = image.uint()
    const isEpollSet = value(keyKind) === types.key && keyKind === kinds.structure
    const valueKind = image.uint()
    if (isEmpty(keyKind) && isEmpty(valueKind)) return
    for (let left = count; ;) {
      const target = value(valueKind)
      if (isEpollSet && valueKind === kinds.reference) visitor.member(target)
      if (--left === 0) return
      value(keyKind)
    }
  }

  function structure(): number {
    const type = image.uint()
    const kind = image.uint()
    if (type === types.interest && kind === kinds.fields) interest()
    else value(kind)
    return type
  }

  function interest(): void {
    const count = image.count()
    for (let field = 0; field < count; field++) {
      const kind = image.uint()
      if (field !== types.maskField) value(kind)
      else if (kind === kinds.uint) visitor.interest(objectId, image.uintOffsets())
      else if (kind !== kinds.nil) throw new UnknownImage('an event mask is not a number')
    }
  }

  return (id) => {
    objectId = id
    value(image.uint())
  }
}

const maxDepth = 200
