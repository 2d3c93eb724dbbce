/** An account of the sandbox, as /etc/passwd and /etc/group describe it. */
export interface User {
  readonly name: string
  readonly uid: number
  readonly gid: number
  /** Supplementary groups: the primary one first, then those that list the user. */
  readonly groups: readonly number[]
  readonly home: string
}

export interface Users {
  /** Undefined when there is no such account; an `internal` fault when its ids are not numbers. */
  find(name: string): Promise<User | undefined>
}
