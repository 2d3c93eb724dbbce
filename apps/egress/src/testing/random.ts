/** Seeded random numbers (mulberry32), so that a failure can be reproduced. */
export interface Random {
  /** Integer from 0 to `limit - 1`. */
  below(limit: number): number
  bytes(length: number): Buffer
}

export function createRandom(seed: number): Random {
  let state = seed
  const next = () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
  const below = (limit: number) => Math.floor(next() * limit)
  return { below, bytes: (length) => Buffer.from(Array.from({ length }, () => below(256))) }
}

/** Mutates bytes a few times, as a fuzzer does: replaces, inserts, removes, repeats and truncates. */
export function mutate(original: Buffer, random: Random): Buffer {
  let bytes = Buffer.from(original)
  for (let left = 1 + random.below(3); left > 0; left -= 1) {
    const at = random.below(bytes.length + 1)
    const to = Math.min(bytes.length, at + random.below(24))
    const [before, part, after] = [
      bytes.subarray(0, at),
      bytes.subarray(at, to),
      bytes.subarray(to),
    ]
    const choices: readonly Buffer[][] = [
      [before, random.bytes(1), bytes.subarray(at + 1)],
      [before, Buffer.from([[0, 1, 10, 13, 32, 46, 58, 255][random.below(8)] ?? 0]), part, after],
      [before, after],
      [before, part, part, after],
      [before, random.bytes(random.below(8)), part, after],
      [before],
    ]
    bytes = Buffer.concat(choices[random.below(choices.length)] ?? [])
  }
  return bytes
}
