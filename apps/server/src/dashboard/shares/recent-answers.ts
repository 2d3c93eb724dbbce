const freshMs = 1_000
const maxAnswers = 1_000

/**
 * Visitors of a link share each answer for a second. Requests of a link count against the rate limits of its team, so
 * that a visitor who reloads all the time would lock the team out.
 */
export function createRecentAnswers(now = () => performance.now()) {
  const answers = new Map<string, { readonly at: number; readonly answer: Promise<unknown> }>()
  return {
    async find(key: string, read: () => Promise<unknown>): Promise<unknown> {
      const at = now()
      const known = answers.get(key)
      if (known && at - known.at < freshMs) return known.answer
      answers.delete(key)
      for (const [oldest, { at: since }] of answers) {
        if (answers.size < maxAnswers && at - since < freshMs) break
        answers.delete(oldest)
      }
      const answer = read()
      answers.set(key, { at, answer })
      return answer
    },
  }
}
