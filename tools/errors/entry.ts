import type { Area } from './areas.ts'

/** Explanation of one reason: what it means, and what the reader can do. One sentence each. */
export type Entry = readonly [meaning: string, remedy: string]

/** One table of the page. */
export interface EntryGroup {
  readonly area: Area
  readonly title: string
  /** Markdown between the title and the table. */
  readonly intro?: string
  /** By reason. */
  readonly entries: Readonly<Record<string, Entry>>
}
