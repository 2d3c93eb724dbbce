/** Account in the sandbox, from /etc/passwd and /etc/group. */
export interface User {
  readonly name: string
  readonly uid: number
  readonly gid: number
  /** Primary group first, then the supplementary groups. */
  readonly groups: readonly number[]
  readonly home: string
}

export interface Users {
  /** Returns undefined for an unknown account. Throws an `internal` fault if its IDs are not numbers. */
  find(name: string): Promise<User | undefined>
}
