import { isEmpty, kinds, skipReference, skipTypeSpec } from './gvisor-image-kinds.ts'
import { UnknownImage } from './gvisor-image.ts'
import type { ImageReader } from './gvisor-image.ts'

/** Callbacks for the epoll sets and TCP connections in an image. */
export interface ImageVisitor {
  /** Reports a current or former member of an epoll set, with the file offsets of its event mask. */
  interest(objectId: number, maskOffsets: readonly number[]): void
  /** Reports an interest that an epoll set still contains. */
  member(objectId: number): void
  /** Reports a connection: the object with its queue of waiters, and the type of its error (0 for none). */
  connection(queueId: number, errorType: number): void
  /** Reports a queue of waiters that is not empty. */
  waiters(queueId: number): void
  type(typeId: number, name: string): void
}

/** Numbers of the types and fields that a visitor hears of; -1 until the graph has declared them. */
export interface KnownTypes {
  interest: number
  key: number
  connection: number
  queue: number
  /** Indexes of fields. */
  mask: number
  waiterQueue: number
  hardError: number
  /** Reads the declaration of the next type. */
  register(): void
}

export function createKnownTypes(
  image: ImageReader,
  visitor: Pick<ImageVisitor, 'type'>,
): KnownTypes {
  let count = 0
  return {
    ...{ interest: -1, key: -1, connection: -1, queue: -1 },
    ...{ mask: -1, waiterQueue: -1, hardError: -1 },
    register() {
      count++
      const name = image.text()
      visitor.type(count, name)
      if (name === 'pkg/sentry/vfs.epollInterestKey') this.key = count
      if (name === 'pkg/sentry/vfs.epollInterest') this.interest = count
      if (name === 'pkg/tcpip/transport/tcp.Endpoint') this.connection = count
      if (name === 'pkg/waiter.Queue') this.queue = count
      const hasKnownFields = count === this.interest || count === this.connection
      const fields = image.count()
      for (let field = 0; field < fields; field++) {
        if (!hasKnownFields) {
          image.skip(image.count())
          continue
        }
        const fieldName = image.text()
        if (count === this.interest && fieldName === 'mask') this.mask = field
        if (count === this.connection && fieldName === 'waiterQueue') this.waiterQueue = field
        if (count === this.connection && fieldName === 'hardError') this.hardError = field
      }
    },
  }
}

/** Returns a function that walks the value of one object. */
export function createValueWalker(
  image: ImageReader,
  types: KnownTypes,
  visitor: ImageVisitor,
): (objectId: number) => void {
  let objectId = 0
  let depth = 0
  let references = 0

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
    if (type === types.queue) queue(kind)
    else if (type === types.interest && kind === kinds.fields) interest()
    else if (type === types.connection && kind === kinds.fields) connection()
    else value(kind)
    return type
  }

  function interest(): void {
    const count = image.count()
    for (let field = 0; field < count; field++) {
      const kind = image.uint()
      if (field !== types.mask) value(kind)
      else if (kind === kinds.uint) visitor.interest(objectId, image.uintOffsets())
      else if (kind !== kinds.nil) throw new UnknownImage('an event mask is not a number')
    }
  }

  function connection(): void {
    let [queueId, errorType] = [0, 0]
    const count = image.count()
    for (let field = 0; field < count; field++) {
      const kind = image.uint()
      if (field === types.waiterQueue && kind === kinds.reference) queueId = value(kind)
      else if (field === types.hardError && kind === kinds.interface) {
        errorType = skipTypeSpec(image)
        value(image.uint())
      } else value(kind)
    }
    visitor.connection(queueId, errorType)
  }

  /** A queue is a list, which refers to its first and last waiter. */
  function queue(kind: number): void {
    references = 0
    value(kind)
    if (references > 0) visitor.waiters(objectId)
  }

  return (id) => {
    objectId = id
    value(image.uint())
  }
}

const maxDepth = 200
