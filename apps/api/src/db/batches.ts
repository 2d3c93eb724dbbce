/** Databases bound the values of one statement; this stays below all of them. */
const batchSize = 500

export function* batches<T>(items: readonly T[]): Generator<readonly T[]> {
  for (let start = 0; start < items.length; start += batchSize) {
    yield items.slice(start, start + batchSize)
  }
}
