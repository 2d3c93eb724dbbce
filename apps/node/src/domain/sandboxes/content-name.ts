/** Identifies what a pause kept. */
export interface ContentName {
  /** Generation that was paused. */
  readonly keptGeneration: number
  /** Random ID of the pause. Absent: paused by an old Atoll version. */
  readonly keptId?: string | undefined
}

/** Returns the name of a content among those of its sandbox, such as `4.k2j9x0q8w1zp`. */
export function nameOfContent({ keptGeneration, keptId }: ContentName): string {
  return keptId === undefined ? `${keptGeneration}` : `${keptGeneration}.${keptId}`
}

/** Returns the generation in such a name; `NaN` for any other text. */
export function generationIn(name: string): number {
  return /^\d+(\.[a-z0-9]+)?$/.test(name) ? Number.parseInt(name, 10) : Number.NaN
}

export function isSameContent(
  { keptGeneration, keptId }: Partial<ContentName>,
  other: Partial<ContentName>,
): boolean {
  return keptGeneration === other.keptGeneration && keptId === other.keptId
}
