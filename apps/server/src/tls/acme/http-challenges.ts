import type { ChallengeResponder } from './challenges.ts'

/** Proofs that the CA reads from this server over plain HTTP (RFC 8555, section 8.3). */
export interface HttpChallenges extends ChallengeResponder {
  /** Returns the proof for a token of the CA. */
  find(token: string): string | undefined
}

export function createHttpChallenges(): HttpChallenges {
  const values = new Map<string, string>()
  return {
    type: 'http-01',
    add: async ({ token, value }) => void values.set(token, value),
    remove: async ({ token }) => void values.delete(token),
    find: (token) => values.get(token),
  }
}
