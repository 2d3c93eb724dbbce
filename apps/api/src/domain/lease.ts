/** Which of the server processes on one store live. */
export interface LeaseStore {
  renew(processId: string, expiresAt: Date): Promise<void>
  listLive(now: Date): Promise<string[]>
  end(processId: string): Promise<void>
  deleteExpiredBefore(time: Date): Promise<void>
}
