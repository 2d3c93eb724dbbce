import { createKnownTypes } from './gvisor-image-structures.ts'
import type { ImageVisitor } from './gvisor-image-structures.ts'
import { createValueWalker } from './gvisor-image-values.ts'
import { kinds } from './gvisor-image-kinds.ts'
import { UnknownImage } from './gvisor-image.ts'
import type { ImageReader } from './gvisor-image.ts'

/** Walks all objects of an image and yields after each. */
export function* walkImage(image: ImageReader, visitor: ImageVisitor): Generator<void> {
  while (!image.isAtEnd()) yield* walkGraph(image, visitor)
}

/** Skips values without storing them: an image has a hundred thousand or more. */
function* walkGraph(image: ImageReader, visitor: ImageVisitor): Generator<void> {
  const types = createKnownTypes(image, visitor)
  const walkObject = createValueWalker(image, types, visitor)
  for (let left = image.graphSize(); left > 0;) {
    const kind = image.uint()
    if (kind === kinds.type) types.register()
    else if (kind === kinds.uint) {
      left--
      walkObject(image.uint())
      yield
    } else throw new UnknownImage('an object has no number')
  }
}
