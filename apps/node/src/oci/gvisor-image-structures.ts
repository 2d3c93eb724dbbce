import { kinds, skipTypeSpec } from './gvisor-image-kinds.ts'
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

/** Numbers of the types and fields that matter to a visitor; -1 until the graph has declared them. */
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

/** Walks the structures of known types and reports them to the visitor. */
export interface KnownStructures {
  interest(objectId: number): void
  connection(): void
  queue(kind: number, objectId: number): void
}

export function createKnownStructures(
  image: ImageReader,
  types: KnownTypes,
  visitor: ImageVisitor,
  walker: {
    /** Walks a value of any kind and returns the target of a reference. */
    value(kind: number): number
    /** Number of references walked so far that are not nil. */
    countReferences(): number
  },
): KnownStructures {
  const { value, countReferences } = walker
  return {
    interest(objectId) {
      const count = image.count()
      for (let field = 0; field < count; field++) {
        const kind = image.uint()
        if (field !== types.mask) value(kind)
        else if (kind === kinds.uint) visitor.interest(objectId, image.uintOffsets())
        else if (kind !== kinds.nil) throw new UnknownImage('an event mask is not a number')
      }
    },

    connection() {
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
    },

    /** A queue is a list, which refers to its first and last waiter. */
    queue(kind, objectId) {
      const before = countReferences()
      value(kind)
      if (countReferences() > before) visitor.waiters(objectId)
    },
  }
}
