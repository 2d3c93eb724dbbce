/** Boot and start tick make a process identity unique: process IDs alone are reused. */
export interface ProcessIdentity {
  readonly pid: number
  readonly started: string
}
