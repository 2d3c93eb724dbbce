import { UnknownImage } from './gvisor-image.ts'
import type { ImageReader } from './gvisor-image.ts'

/** Callbacks for the epoll sets in an image. */
export interface EpollVisitor {
  /** Reports a current or former member of an epoll set, with the file offsets of its event mask. */
  interest(objectId: number, maskOffsets: readonly number[]): void
  /** Reports an interest that an epoll set still contains. */
  member(objectId: number): void
}

/** Walks all objects of an image and yields after each. */
export function* walkImage(image: ImageReader, visitor: EpollVisitor): Generator<void> {
  while (!image.isAtEnd()) yield* walkGraph(image, visitor)
}

/** Skips values without storing them: an image has a hundred thousand or more. */
function* walkGraph(image: ImageReader, visitor: EpollVisitor): Generator<void> {
  let types = 0
  let interestType = -1
  let keyType = -1
  let maskField = -1
  let objectId = 0
  let depth = 0

  function registerType(): void {
    types++
    const name = image.text()
    if (name === 'pkg/sentry/vfs.epollInterestKey') keyType = types
    if (name === 'pkg/sentry/vfs.epollInterest') interestType = types
    const fields = image.count()
    for (let field = 0; field < fields; field++) {
      if (types !== interestType) image.skip(image.count())
      else if (image.text() === 'mask') maskField = field
    }
  }

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
        return reference()
      case kinds.string:
        image.skip(image.count())
        return 0
      case kinds.slice:
        image.uint()
        image.uint()
        return reference()
      default:
        return nested(kind)
    }
  }

  function nested(kind: number): number {
    if (++depth > maxDepth) throw new UnknownImage('values are nested too deeply')
    const result = compound(kind)
    depth--
    return result
  }

  function compound(kind: number): number {
    switch (kind) {
      case kinds.array:
        array()
        return 0
      case kinds.map:
        map()
        return 0
      case kinds.structure:
        return structure()
      case kinds.fields:
        for (let left = image.count(); left > 0; left--) value(image.uint())
        return 0
      case kinds.interface:
        typeSpec()
        value(image.uint())
        return 0
      default:
        throw new UnknownImage(`a value is of kind ${kind}`)
    }
  }

  function reference(): number {
    const root = image.uint()
    const steps = image.count()
    for (let left = steps; left > 0; left--) {
      // An even number is an index; an odd one encodes the length of a field name.
      const step = image.uint()
      if (step % 2 === 1) image.skip((step + 1) / 2)
    }
    if (steps > 0) typeSpec()
    return root
  }

  function typeSpec(): void {
    for (let left = 1; left > 0; left--) {
      const kind = image.uint()
      if (kind > typeSpecs.nil) throw new UnknownImage(`a type is of kind ${kind}`)
      if (kind === typeSpecs.id || kind === typeSpecs.array) image.uint()
      if (kind === typeSpecs.map) left += 2
      else if (kind !== typeSpecs.id && kind !== typeSpecs.nil) left++
    }
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
    const isEpollSet = value(keyKind) === keyType && keyKind === kinds.structure
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
    if (type === interestType && kind === kinds.fields) interest()
    else value(kind)
    return type
  }

  function interest(): void {
    const count = image.count()
    for (let field = 0; field < count; field++) {
      const kind = image.uint()
      if (field !== maskField) value(kind)
      else if (kind === kinds.uint) visitor.interest(objectId, image.uintOffsets())
      else if (kind !== kinds.nil) throw new UnknownImage('an event mask is not a number')
    }
  }

  for (let left = image.graphSize(); left > 0;) {
    const kind = image.uint()
    if (kind === kinds.type) registerType()
    else if (kind === kinds.uint) {
      objectId = image.uint()
      left--
      value(image.uint())
      yield
    } else throw new UnknownImage('an object has no number')
  }
}

/** Tests whether values of this kind take no bytes; their count is then not bounded by the image size. */
function isEmpty(kind: number): boolean {
  return kind === kinds.nil || kind === kinds.noFields
}

const kinds = {
  bool: 0,
  int: 1,
  uint: 2,
  float32: 3,
  float64: 4,
  nil: 5,
  reference: 6,
  string: 7,
  slice: 8,
  array: 9,
  map: 10,
  structure: 11,
  noFields: 12,
  fields: 13,
  interface: 14,
  complex64: 15,
  complex128: 16,
  type: 17,
} as const

const typeSpecs = { id: 0, pointer: 1, array: 2, slice: 3, map: 4, nil: 5 } as const

const maxDepth = 200
