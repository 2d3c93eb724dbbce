/**
 * IDs of all snapshots and built templates that ever had a record in this store. Files on a node whose ID is here, without a
 * record, were deleted. Files whose ID is not here are unknown: the store may have been restored to an older state, or the
 * files belong to another installation.
 */
export interface IssuedFiles {
  /** Returns those of the IDs that had a record once. */
  among(ids: readonly string[]): Promise<ReadonlySet<string>>
  /** Notes which IDs have lost their record by now, and forgets IDs that were noted before `time`. */
  forgetUnused(now: Date, time: Date): Promise<void>
}
