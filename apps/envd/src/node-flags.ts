/**
 * Flags of Node.js for envd. They decide which compile cache it reads, so the build of the cache must use them too.
 *
 * Without its memory reducer, V8 does not collect garbage twice in the first 20 seconds of every restored sandbox. The
 * memory was compacted before the checkpoint, and under gVisor a collection takes 60 ms of processor time.
 */
export const envdNodeFlags: readonly string[] = ['--no-memory-reducer']
