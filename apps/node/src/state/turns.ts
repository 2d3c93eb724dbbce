/** Runs the writes of one record one after another. Writes of different records do not wait for each other. */
export function createTurns(): <T>(key: string, work: () => Promise<T>) => Promise<T> {
  const last = new Map<string, Promise<unknown>>()
  return (key, work) => {
    const before = last.get(key)
    const done = before ? before.then(work, work) : work()
    last.set(key, done)
    const leave = () => {
      if (last.get(key) === done) last.delete(key)
    }
    done.then(leave, leave)
    return done
  }
}
