import { UnknownImage } from './gvisor-image.ts'
import type { ImageReader } from './gvisor-image.ts'

/** Kinds of values in an image. */
export const kinds = {
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

/** Tests whether values of this kind take no bytes; their count is then not bounded by the image size. */
export function isEmpty(kind: number): boolean {
  return kind === kinds.nil || kind === kinds.noFields
}

/** Skips a reference and returns the number of its target. */
export function skipReference(image: ImageReader): number {
  const target = image.uint()
  const steps = image.count()
  for (let left = steps; left > 0; left--) {
    // An even number is an index; an odd one encodes the length of a field name.
    const step = image.uint()
    if (step % 2 === 1) image.skip((step + 1) / 2)
  }
  if (steps > 0) skipTypeSpec(image)
  return target
}

/** Skips the description of a type and returns the number of the last type that it names; 0 for none. */
export function skipTypeSpec(image: ImageReader): number {
  let named = 0
  for (let left = 1; left > 0; left--) {
    const kind = image.uint()
    if (kind > typeSpecs.nil) throw new UnknownImage(`a type is of kind ${kind}`)
    if (kind === typeSpecs.id) named = image.uint()
    if (kind === typeSpecs.array) image.uint()
    if (kind === typeSpecs.map) left += 2
    else if (kind !== typeSpecs.id && kind !== typeSpecs.nil) left++
  }
  return named
}
