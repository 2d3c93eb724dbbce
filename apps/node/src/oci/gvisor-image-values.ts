import { isEmpty, kinds, skipReference, skipTypeSpec } from './gvisor-image-kinds.ts'
import { UnknownImage } from './gvisor-image.ts'
import type { ImageReader } from './gvisor-image.ts'
import { createKnownStructures } from './gvisor-image-structures.ts'
import type { ImageVisitor, KnownTypes } from './gvisor-image-structures.ts'

/** Returns a function that walks the value of one object. */
export function createValueWalker(
  image: ImageReader,
  types: KnownTypes,
  visitor: ImageVisitor,
): (objectId: number) => void {
  let objectId = 0
  let depth = 0
  let references = 0
  const known = createKnownStructures(image, types, visitor, {
    value,
    countReferences: () => references,
  })

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
      case kinds.reference: {
        const target = skipReference(image)
        if (target > 0) references++
        return target
      }
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
    if (type === types.queue) known.queue(kind, objectId)
    else if (type === types.interest && kind === kinds.fields) known.interest(objectId)
    else if (type === types.connection && kind === kinds.fields) known.connection()
    else value(kind)
    return type
  }

  return (id) => {
    objectId = id
    value(image.uint())
  }
}

const maxDepth = 200
